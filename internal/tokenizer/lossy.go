// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// lossy converts bytes that may not be UTF-8 to text. Each maximal part that could have begun a character becomes one
// U+FFFD, and so does each other stray byte, as in the reference tokenizers. (A conversion to runes would give one for
// each byte, strings.ToValidUTF8 one for each run.)
func lossy(text []byte) string {
	if utf8.Valid(text) {
		return string(text)
	}
	var out strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if r == utf8.RuneError && size == 1 {
			size = invalidPart(text)
		}
		out.WriteRune(r)
		text = text[size:]
	}
	return out.String()
}

// invalidPart returns the length of the longest start of text that is also the start of a character, but at least 1.
// The text does not begin with a whole character.
func invalidPart(text []byte) int {
	for size := min(len(text), utf8.UTFMax-1); size > 1; size-- {
		// FullRune also returns true for bytes that can no longer become a character.
		if !utf8.FullRune(text[:size]) {
			return size
		}
	}
	return 1
}
