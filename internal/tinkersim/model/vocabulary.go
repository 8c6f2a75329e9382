// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

// Vocabulary is another way to write the model's own tokens: each of its tokens is read as one or more of
// them. It is safe for concurrent use.
//
// The network stays what it is. The log-probability of a token is the sum over the own tokens that it is
// read as, so that it is exact and its gradient flows through all of them. What is sampled are ids that are
// read as one own token; own tokens that no id is read as alone are never drawn.
type Vocabulary interface {
	// Spell gives the own tokens that a token is read as, at least one; nil for an id that there is not.
	Spell(id int32) []int32
	// Token gives the id that is read as one own token alone; ok is false where there is none.
	Token(own int32) (id int32, ok bool)
}

// ownVocabulary is that of the model itself.
type ownVocabulary struct{}

// ownTokens are all own tokens in order, to be sliced.
var ownTokens = func() (all [Vocab]int32) {
	for i := range all {
		all[i] = int32(i)
	}
	return all
}()

// Spell implements Vocabulary.
func (ownVocabulary) Spell(id int32) []int32 {
	if id < 0 || id >= Vocab {
		return nil
	}
	return ownTokens[id : id+1 : id+1]
}

// Token implements Vocabulary.
func (ownVocabulary) Token(own int32) (int32, bool) { return own, true }

// spelling is a sequence in own tokens.
type spelling struct {
	own []int32
	// ends has, for each token of the sequence, where its own tokens end.
	ends []int
}

// read spells a sequence out, if it can be given to the model.
func (b *BaseModel) read(tokens []int32) (spelling, error) {
	if len(tokens) == 0 {
		return spelling{}, userErrorf("it has no tokens")
	}
	s := spelling{own: make([]int32, 0, len(tokens)), ends: make([]int, len(tokens))}
	for i, token := range tokens {
		own := b.vocabulary.Spell(token)
		if own == nil {
			return spelling{}, userErrorf("its token %d at position %d is not in the vocabulary", token, i)
		}
		s.own = append(s.own, own...)
		s.ends[i] = len(s.own)
	}
	if err := s.checkLength(len(s.own)); err != nil {
		return spelling{}, err
	}
	return s, nil
}

// checkLength says whether so many own tokens fit the context.
func (s spelling) checkLength(n int) error {
	switch {
	case n <= MaxContext:
		return nil
	case len(s.ends) == n:
		return userErrorf("its %d tokens are more than the context of %d", n, MaxContext)
	default:
		return userErrorf("its %d tokens have %d bytes, which is more than the context of %d", len(s.ends), n, MaxContext)
	}
}
