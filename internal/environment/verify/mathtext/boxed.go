// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package mathtext reads mathematical answers as models write them, in plain text or LaTeX, and decides whether two of
// them are equal. It knows numbers, fractions, roots, powers and the usual functions, compares expressions with
// variables at a few points, and compares answers that it cannot read as text.
package mathtext

import "strings"

// mostBoxes bounds how many boxes without content are passed over.
const mostBoxes = 32

// Boxed returns the content of the last \\boxed{...} or \\fbox{...} of the text that is not empty, or the word after a
// \\boxed without braces if that can be an answer. It returns false if the text has no box, or if the braces of the
// last one are not closed.
func Boxed(text string) (content string, ok bool) {
	end := len(text)
	for range mostBoxes {
		at, command := -1, ""
		for _, name := range []string{"\\boxed", "\\fbox"} {
			if i := strings.LastIndex(text[:end], name); i > at {
				at, command = i, name
			}
		}
		if at < 0 {
			return "", ok
		}
		found, closed := boxAt(text[at+len(command):])
		if !closed {
			return "", false
		}
		if found != "" {
			return found, true
		}
		// The answer may be in an earlier box.
		end, ok = at, ok || strings.HasPrefix(strings.TrimLeft(text[at+len(command):], " \n"), "{")
	}
	return "", ok
}

// boxAt returns the content of the box whose command precedes the text. A command without content is empty.
func boxAt(text string) (content string, closed bool) {
	if after := strings.TrimLeft(text, " \n"); strings.HasPrefix(after, "{") {
		content, _, closed = cutBraces(after)
		return strings.TrimSpace(content), closed
	}
	if !strings.HasPrefix(text, " ") && !isDigit(text) {
		return "", true
	}
	word := strings.TrimLeft(text, " ")
	if end := strings.IndexAny(word, " $\n"); end >= 0 {
		word = word[:end]
	}
	if len(word) == 1 || strings.ContainsAny(word, "0123456789\\") {
		return word, true
	}
	return "", true
}

// cutBraces returns the content of the braces that the text begins with, and the text behind them.
func cutBraces(text string) (content, rest string, ok bool) {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++ // The next character is escaped.
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return text[1:i], text[i+1:], true
			}
		}
	}
	return "", "", false
}
