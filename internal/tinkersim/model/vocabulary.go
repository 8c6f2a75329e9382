// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

// Vocabulary maps token ids to the model's native tokens: each id stands for one or more of them. It is safe
// for concurrent use.
//
// The network does not change. The log-probability of a token is the sum over its native tokens, so it is
// exact and its gradient flows through all of them. Only ids that stand for one native token are sampled;
// native tokens without such an id are never drawn.
type Vocabulary interface {
	// Spell returns the native tokens of an id, from one to MaxSpelling, or nil if the vocabulary does not have the id.
	Spell(id int32) []int32
	// Token returns the id that stands for one native token alone; ok is false if it does not exist.
	Token(native int32) (id int32, ok bool)
}

// nativeVocabulary is the vocabulary of the model itself.
type nativeVocabulary struct{}

// nativeTokens are all native tokens in order, to be sliced.
var nativeTokens = func() (all [Vocab]int32) {
	for i := range all {
		all[i] = int32(i)
	}
	return all
}()

// Spell implements Vocabulary.
func (nativeVocabulary) Spell(id int32) []int32 {
	if id < 0 || id >= Vocab {
		return nil
	}
	return nativeTokens[id : id+1 : id+1]
}

// Token implements Vocabulary.
func (nativeVocabulary) Token(native int32) (int32, bool) { return native, true }

// spelling is a sequence of tokens in native tokens.
type spelling struct {
	native []int32
	// ends has, for each token of the sequence, the index after its last native token.
	ends []int
}

// read converts a sequence to native tokens, if the model accepts it.
func (b *BaseModel) read(tokens []int32) (spelling, error) {
	switch {
	case len(tokens) == 0:
		return spelling{}, userErrorf("it has no tokens")
	case len(tokens) > b.context:
		return spelling{}, userErrorf("its %d tokens are more than the context of %d", len(tokens), b.context)
	}
	s := spelling{native: make([]int32, 0, len(tokens)), ends: make([]int, len(tokens))}
	for i, token := range tokens {
		native := b.vocabulary.Spell(token)
		if native == nil {
			return spelling{}, userErrorf("its token %d at position %d is not in the vocabulary", token, i)
		}
		s.native = append(s.native, native...)
		s.ends[i] = len(s.native)
	}
	return s, nil
}
