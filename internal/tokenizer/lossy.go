// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// lossy makes text of bytes that may be no UTF-8. Each maximal part that could have begun a character
// becomes one U+FFFD, and each other stray byte one, as the reference tokenizers have it. (Converting to
// runes returns one for each byte, strings.ToValidUTF8 one for each run.)
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

// invalidPart is the length of the longest start of text that is also the start of a character; at least
// 1. The text begins with no whole character.
func invalidPart(text []byte) int {
	for size := min(len(text), utf8.UTFMax-1); size > 1; size-- {
		// FullRune is true of what can no longer become a character.
		if !utf8.FullRune(text[:size]) {
			return size
		}
	}
	return 1
}
