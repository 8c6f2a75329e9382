// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"html"
	"strings"
)

// markup is text that is written as it is. Only constants become markup without a conversion, and this package
// converts nothing to markup.
type markup string

// writer writes HTML. It replaces html/template, which calls methods by name: the linker keeps the methods of all
// types in a program that uses html/template, which made the programs of this project larger by a quarter.
type writer struct{ out bytes.Buffer }

// put writes markup in which each % stands for the next text. Texts are escaped for elements and for attributes in
// quotes.
func (w *writer) put(m markup, texts ...string) {
	rest := string(m)
	for _, text := range texts {
		before, after, _ := strings.Cut(rest, "%")
		w.out.WriteString(before)
		w.out.WriteString(escape(text))
		rest = after
	}
	w.out.WriteString(rest)
}

// unlessEmpty is like put, but writes nothing if the text is empty.
func (w *writer) unlessEmpty(m markup, text string) {
	if text != "" {
		w.put(m, text)
	}
}

// escape escapes a text. Characters that HTML does not permit are replaced.
func escape(text string) string {
	return html.EscapeString(strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD"))
}
