// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package mathtext reads mathematical answers as models write them, in plain text or LaTeX, and decides whether two of
// them are equal. It knows numbers, fractions, roots, powers and the usual functions, compares expressions with
// variables at a few points, and compares what it cannot read as text.
package mathtext

import "strings"

// Boxed returns what the last \\boxed{...} or \\fbox{...} of the text contains, or the word after a \\boxed without
// braces. It returns false if the text has no box, or if its braces are not closed.
func Boxed(text string) (content string, ok bool) {
	at, command := -1, ""
	for _, name := range []string{"\\boxed", "\\fbox"} {
		if i := strings.LastIndex(text, name); i > at {
			at, command = i, name
		}
	}
	if at < 0 {
		return "", false
	}
	rest := text[at+len(command):]
	if after := strings.TrimLeft(rest, " "); strings.HasPrefix(after, "{") {
		return braced(after)
	}
	if !strings.HasPrefix(rest, " ") {
		return "", false
	}
	word := strings.TrimLeft(rest, " ")
	if end := strings.IndexAny(word, " $\n"); end >= 0 {
		word = word[:end]
	}
	return word, word != ""
}

// braced returns the content of the braces that the text begins with.
func braced(text string) (content string, ok bool) {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++ // The next character is escaped.
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return strings.TrimSpace(text[1:i]), true
			}
		}
	}
	return "", false
}
