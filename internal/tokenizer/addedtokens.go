// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import (
	"encoding/json"
	"strconv"
	"sync/atomic"
)

// addedToken is an added token in the form of the file.
type addedToken struct {
	ID         int32
	Content    string
	SingleWord bool `json:"single_word"`
	LStrip     bool
	RStrip     bool
	Normalized bool
	Special    bool
}

// readAdded reads the tokens that are found before text is split, and completes the vocabulary with them.
func (b *builder) readAdded(value []byte) error {
	tokens, err := readAddedTokens(value)
	if err != nil {
		return err
	}
	return b.addAll(tokens)
}

func readAddedTokens(value []byte) ([]addedToken, error) {
	var list []json.RawMessage
	if !isNull(value) {
		if err := json.Unmarshal(value, &list); err != nil {
			return nil, problem("%s is not a list", short(value))
		}
	}
	tokens := make([]addedToken, len(list))
	for i, item := range list {
		if err := decode(item, &tokens[i]); err != nil {
			return nil, within("["+strconv.Itoa(i)+"]", err)
		}
	}
	return tokens, nil
}

// addAll completes the vocabulary with tokens.
func (b *builder) addAll(tokens []addedToken) error {
	for i, token := range tokens {
		if err := b.placeAdded(token); err != nil {
			return within("["+strconv.Itoa(i)+"]", err)
		}
	}
	b.match(tokens)
	return nil
}

// placeAdded checks the id of an added token, which must be its id in the vocabulary or the next free id. The
// reference numbers added tokens itself, and would not use any other id in the file.
func (b *builder) placeAdded(token addedToken) error {
	switch {
	case token.Content == "":
		return within("content", problem("the token is empty"))
	case token.SingleWord || token.LStrip || token.RStrip:
		return problem("%q has single_word, lstrip or rstrip, which are not known", token.Content)
	case token.Normalized && b.t.normalize != nil && b.t.normalize(token.Content) != token.Content:
		return within("content", problem("%q is not normalised; it would be decoded to other text than it is matched in",
			token.Content))
	}
	if _, twice := b.t.specials[token.Content]; twice {
		return within("content", problem("%q occurs twice", token.Content))
	}
	b.t.specials[token.Content] = token.ID
	if token.Special {
		b.t.special[token.ID] = true
	}
	start := len(b.text)
	bytes, plain := appendBytes(b.text, []byte(token.Content))
	id, ok := b.odd[token.Content]
	if plain {
		id, ok = b.t.vocabulary.find(string(bytes[start:]))
	}
	if ok {
		if id != token.ID {
			return within("id", problem("%q has id %d, and %d in the vocabulary", token.Content, token.ID, id))
		}
		return nil
	}
	if token.ID != b.next {
		return within("id", problem("%q has id %d, but %d is the next that is free", token.Content, token.ID, b.next))
	}
	b.next++
	b.text = bytes
	return b.place(token.ID, start)
}

// match makes the matchers of the added tokens.
func (b *builder) match(tokens []addedToken) {
	var raw, normalized []added
	for _, token := range tokens {
		a := added{id: token.ID, content: token.Content, special: token.Special}
		if token.Normalized {
			normalized = append(normalized, a)
		} else {
			raw = append(raw, a)
		}
	}
	if len(raw) > 0 {
		b.t.raw = newMatcher(raw)
	}
	if len(normalized) > 0 {
		b.t.normalized = newMatcher(normalized)
	}
}

// finish returns the tokenizer. Its vocabulary now also has the bytes of the added tokens.
func (b *builder) finish() *BPE {
	b.t.vocabulary.text, b.t.vocabulary.spans = string(b.text), b.spans
	b.t.whole = make([]atomic.Uint32, len(b.spans)/wholeIDs+1)
	return b.t
}
