// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import "unicode/utf8"

// AppendEncodeWhere implements Tokenizer. Names of special tokens are found in text before it is normalised, or in
// parts that normalization leaves as they are; in other parts they are found if special returns true for the whole
// part.
func (t *BPE) AppendEncodeWhere(dst []int32, text string, special func(start, end int) bool) []int32 {
	if !utf8.ValidString(text) {
		return t.AppendEncode(dst, text, Literal) // Places in it are not places in the encoded text.
	}
	portions := []string{text}
	if t.portions != nil {
		portions = t.portions(text)
	}
	begin := 0
	for _, portion := range portions {
		dst = t.encodeWhere(dst, portion, func(start, end int) bool { return special(begin+start, begin+end) })
		begin += len(portion)
	}
	return dst
}

func (t *BPE) encodeWhere(dst []int32, text string, special func(start, end int) bool) []int32 {
	return betweenWhere(dst, text, t.raw, special, func(dst []int32, part string, at int) []int32 {
		inside := func(start, end int) bool { return special(at+start, at+end) }
		written := part
		if t.normalize != nil {
			written = t.normalize(part)
		}
		if written != part {
			whole := special(at, at+len(part))
			inside = func(int, int) bool { return whole }
		}
		return betweenWhere(dst, written, t.normalized, inside, func(dst []int32, part string, _ int) []int32 {
			return t.encodePieces(dst, part)
		})
	})
}

// betweenWhere appends the ids of added tokens and, with encode, of the parts of text between them; encode receives
// the place of each part. If a special token is not to be recognised, it skips the whole token, as between does.
func betweenWhere(dst []int32, text string, m *matcher, special func(start, end int) bool,
	encode func(dst []int32, part string, at int) []int32) []int32 {
	done := 0
	for at := 0; m != nil; {
		found, ok := m.find(text, at)
		if !ok {
			break
		}
		at = found.end
		if found.special && !special(found.start, found.end) {
			continue
		}
		dst = append(encode(dst, text[done:found.start], done), found.id)
		done = found.end
	}
	return encode(dst, text[done:], done)
}
