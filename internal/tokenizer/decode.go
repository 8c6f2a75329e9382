// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import "fmt"

// Token returns the bytes of an id, which may be a part of a character. ok is false if the vocabulary lacks the id.
func (t *BPE) Token(id int32) (bytes string, ok bool) { return t.vocabulary.bytes(id) }

// AppendBytes appends the bytes of ids one after the other. An id that the vocabulary lacks is an error.
func (t *BPE) AppendBytes(dst []byte, ids []int32) ([]byte, error) {
	for i, id := range ids {
		token, ok := t.vocabulary.bytes(id)
		if !ok {
			return dst, fmt.Errorf("decoding token %d of %d: the vocabulary has no id %d", i, len(ids), id)
		}
		dst = append(dst, token...)
	}
	return dst, nil
}

// Decode implements Tokenizer.
func (t *BPE) Decode(ids []int32) (string, error) {
	text, err := t.AppendBytes(make([]byte, 0, 5*len(ids)), ids)
	if err != nil {
		return "", err
	}
	return lossy(text), nil
}
