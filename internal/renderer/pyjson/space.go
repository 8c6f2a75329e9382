// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package pyjson

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsSpace reports whether a character is white space for str.strip() and \s: the white space of Unicode, and U+001C to
// U+001F.
func IsSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1C && r <= 0x1F }

// Strip is str.strip().
func Strip(text string) string { return strings.TrimFunc(text, IsSpace) }

// StripLeft is str.lstrip().
func StripLeft(text string) string { return strings.TrimLeftFunc(text, IsSpace) }

// StripRight is str.rstrip().
func StripRight(text string) string { return strings.TrimRightFunc(text, IsSpace) }

// Capitalize is str.capitalize(): the first character in title case, the others in lower case.
func Capitalize(text string) string {
	r, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	return string(unicode.ToTitle(r)) + strings.ToLower(text[size:])
}
