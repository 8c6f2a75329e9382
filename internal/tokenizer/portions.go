// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import "unicode"

// Kimi's own tokenizer class passes its text to tiktoken in portions, and pieces never cross their ends. These are the
// limits of a portion, in characters.
const (
	portionChars = 400_000
	// portionRun is the length of a run of white space, or of other characters.
	portionRun = 25_000
)

// kimiPortions cuts text as that class does.
func kimiPortions(text string) []string {
	if len(text) <= portionRun {
		return []string{text}
	}
	var portions []string
	start, chars, run := 0, 0, 0
	space := false
	for i, r := range text {
		switch now := isPythonSpace(r); {
		case chars == portionChars:
			portions = append(portions, text[start:i])
			start, chars, run, space = i, 0, 1, now
		case chars == 0 || now != space:
			run, space = 1, now
		default:
			if run++; run > portionRun {
				portions = append(portions, text[start:i])
				start, run = i, 1
			}
		}
		chars++
	}
	return append(portions, text[start:])
}

// isPythonSpace is Python's str.isspace, which also includes four separators of records.
func isPythonSpace(r rune) bool {
	return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f
}
