// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import (
	"fmt"
	"unicode/utf8"
)

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

// Stream decodes ids one by one: it returns a character when it is complete. Its texts together are the text of all ids
// decoded at once. The zero Stream is ready for use.
type Stream struct {
	// begun is the start of a character that the next token may complete.
	begun []byte
}

// Add returns the text that the bytes of a token complete, or "" if they only begin a character.
func (s *Stream) Add(token string) string {
	s.begun = append(s.begun, token...)
	whole := len(s.begun)
	for n := 1; n < utf8.UTFMax && n <= len(s.begun); n++ {
		if start := len(s.begun) - n; utf8.RuneStart(s.begun[start]) {
			if !utf8.FullRune(s.begun[start:]) {
				whole = start
			}
			break
		}
	}
	text := lossy(s.begun[:whole])
	s.begun = append(s.begun[:0], s.begun[whole:]...)
	return text
}

// End returns the rest when no token follows: U+FFFD for a character that was only begun.
func (s *Stream) End() string {
	text := lossy(s.begun)
	s.begun = s.begun[:0]
	return text
}
