// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import "fmt"

// byteIDs is how many ids stand for themselves as bytes; the special tokens follow.
const byteIDs = 256

// byteLevel is a vocabulary without merges: each byte is the token of its value.
type byteLevel struct {
	// specials by id, the first having id 256.
	specials []string
}

func newByteLevel() Tokenizer {
	return &byteLevel{specials: []string{"<|end|>", "<|bos|>", "<|pad|>", "<|reserved|>"}}
}

// Encode implements Tokenizer.
func (t *byteLevel) Encode(text string) []int32 {
	ids := make([]int32, len(text))
	for i := range len(text) {
		ids[i] = int32(text[i])
	}
	return ids
}

// Decode implements Tokenizer.
func (t *byteLevel) Decode(ids []int32) (string, error) {
	text := make([]byte, 0, len(ids))
	for i, id := range ids {
		special := int(id) - byteIDs
		switch {
		case id < 0 || special >= len(t.specials):
			return "", fmt.Errorf("decoding token %d of %d: the vocabulary has no id %d", i, len(ids), id)
		case special >= 0:
			text = append(text, t.specials[special]...)
		default:
			text = append(text, byte(id))
		}
	}
	return lossy(text), nil
}

// Special implements Tokenizer.
func (t *byteLevel) Special(name string) (id int32, ok bool) {
	for i, special := range t.specials {
		if special == name {
			return int32(byteIDs + i), true
		}
	}
	return 0, false
}
