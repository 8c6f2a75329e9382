// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package nfc

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// compatible has the decompositions by compatibility. Few tokenizers need them.
var compatible = sync.OnceValue(func() map[rune]string {
	index := make(map[rune]string, len(compatibles))
	for _, d := range compatibles {
		index[d.whole] = d.parts
	}
	return index
})

// Decomposed returns text in form D. The text must be valid UTF-8.
func Decomposed(text string) string { return reformed(text, nil, false) }

// Compatible returns text in form KC. The text must be valid UTF-8.
func Compatible(text string) string { return reformed(text, compatible(), true) }

// CompatibleDecomposed returns text in form KD. The text must be valid UTF-8.
func CompatibleDecomposed(text string) string { return reformed(text, compatible(), false) }

// reformed decomposes text, first by the index if it is not nil. If composed is set, it composes the text again.
func reformed(text string, index map[rune]string, composed bool) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r >= 0xa0 }) {
		return text // No character of ASCII changes.
	}
	if index != nil {
		var replaced strings.Builder
		for _, r := range text {
			if parts, ok := index[r]; ok {
				replaced.WriteString(parts)
			} else {
				replaced.WriteRune(r)
			}
		}
		text = replaced.String()
	}
	if composed {
		return String(text)
	}
	var out strings.Builder
	out.Grow(len(text))
	var parts []rune
	for len(text) > 0 {
		end := starterEnd(text)
		parts = decompose(parts[:0], text[:end])
		for _, r := range parts {
			out.WriteRune(r)
		}
		text = text[end:]
	}
	return out.String()
}

// starterEnd returns the end of the part of text whose decomposition no later character can change.
func starterEnd(text string) int {
	for i, r := range text {
		if i > 0 && properties.order[r] == 0 && (r < utf8.RuneSelf || !beginsWithMark(r)) {
			return i
		}
	}
	return len(text)
}

// beginsWithMark reports whether the decomposition of a character begins with a mark that may be reordered.
func beginsWithMark(r rune) bool {
	parts := properties.decomposition[r]
	if parts == "" {
		return false
	}
	first, _ := utf8.DecodeRuneInString(parts)
	return properties.order[first] != 0
}
