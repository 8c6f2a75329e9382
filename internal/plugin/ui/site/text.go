// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// visible returns a page in which characters that control a terminal, or turn or hide text, are shown as escapes. No
// template has such a character, so each of them is from a model, a data set or a cluster.
func visible(page []byte) []byte {
	if bytes.IndexFunc(page, isHidden) < 0 {
		return page
	}
	var out bytes.Buffer
	out.Grow(len(page) + len(page)/16)
	for len(page) > 0 {
		r, size := utf8.DecodeRune(page)
		if isHidden(r) {
			fmt.Fprintf(&out, `\u{%X}`, r)
		} else {
			out.Write(page[:size])
		}
		page = page[size:]
	}
	return out.Bytes()
}

// isHidden reports whether a character controls how others are shown, or is not shown itself.
func isHidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t' || r == '\r':
		return false
	case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\u2028' || r == '\u2029':
		return true
	case r == '\u200b' || r == '\u2060' || r == '\ufeff' || r == '\u00ad':
		return true // They have no width. Emoji need the joiner U+200D, and scripts of Asia U+200C.
	}
	return 0xE0000 <= r && r <= 0xE007F // tags
}

// most limits the bytes of a text on a page.
const most = 16 << 10

// excerpt is a part of a text.
type excerpt struct {
	Text string
	// Next is the beginning of the rest, and Left its number of bytes; 0 if there is no rest.
	Next, Left int
}

// excerptOf returns the part of a text that begins at a byte.
func excerptOf(text string, from int) excerpt {
	if from < 0 || from >= len(text) {
		return excerpt{}
	}
	rest := text[from:]
	if len(rest) <= most {
		return excerpt{Text: rest}
	}
	end := most
	for end > most-utf8.UTFMax && !utf8.RuneStart(rest[end]) {
		end--
	}
	return excerpt{Text: rest[:end], Next: from + end, Left: len(rest) - end}
}
