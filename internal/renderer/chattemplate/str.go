// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chattemplate

import (
	"strings"
	"unicode/utf8"
)

// str is a string of the template with the origin of each byte. If origins is empty, origin is the origin of the whole
// text.
type str struct {
	text    string
	origins string
	origin  Origin
	markup  bool
}

// lit returns text of the template.
func lit(text string) str { return str{text: text} }

// at returns the origin of a byte.
func (s str) at(i int) Origin {
	if s.origins == "" {
		return s.origin
	}
	return Origin(s.origins[i])
}

// cut returns the bytes from i to j.
func (s str) cut(i, j int) str {
	out := str{text: s.text[i:j], origin: s.origin, markup: s.markup}
	if s.origins != "" && i < j {
		out.origins = s.origins[i:j]
	}
	return out
}

// plain returns the string without its mark as markup.
func (s str) plain() str {
	s.markup = false
	return s
}

// like returns t, as markup if s is markup.
func (s str) like(t str) str {
	t.markup = s.markup
	return t
}

func (s str) ascii() bool {
	for i := range len(s.text) {
		if s.text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// count is len() of Python.
func (s str) count() int { return utf8.RuneCountInString(s.text) }

// offsets returns the byte where each character begins, and the end.
func (s str) offsets() []int {
	out := make([]int, 0, len(s.text)+1)
	for i := range s.text {
		out = append(out, i)
	}
	return append(out, len(s.text))
}

// chars returns the string's characters, each with its origin.
func (s str) chars() []any {
	out := make([]any, 0, len(s.text))
	for i, r := range s.text {
		out = append(out, s.cut(i, i+max(1, utf8.RuneLen(r))))
	}
	return out
}

// mapRunes replaces each character, which keeps its origin.
func (s str) mapRunes(f func(i int, r rune) string) str {
	var out buffer
	for i, r := range s.text {
		out.write(f(i, r), s.at(i))
	}
	return s.like(out.str())
}

// run is a number of bytes with one origin.
type run struct {
	length int
	origin Origin
}

// buffer collects text with its origins.
type buffer struct {
	text strings.Builder
	runs []run
}

func (b *buffer) write(text string, origin Origin) {
	if text == "" {
		return
	}
	b.text.WriteString(text)
	if last := len(b.runs) - 1; last >= 0 && b.runs[last].origin == origin {
		b.runs[last].length += len(text)
		return
	}
	b.runs = append(b.runs, run{len(text), origin})
}

func (b *buffer) add(s str) {
	if s.origins == "" {
		b.write(s.text, s.origin)
		return
	}
	for i := 0; i < len(s.text); {
		j := i + 1
		for j < len(s.text) && s.origins[j] == s.origins[i] {
			j++
		}
		b.write(s.text[i:j], Origin(s.origins[i]))
		i = j
	}
}

func (b *buffer) str() str {
	out := str{text: b.text.String()}
	if len(b.runs) == 1 {
		out.origin = b.runs[0].origin
	}
	if len(b.runs) > 1 {
		var origins strings.Builder
		origins.Grow(len(out.text))
		for _, r := range b.runs {
			for range r.length {
				origins.WriteByte(byte(r.origin))
			}
		}
		out.origins = origins.String()
	}
	return out
}

func (b *buffer) spans() []Span {
	var out []Span
	text := b.text.String()
	for _, r := range b.runs {
		out = append(out, Span{text[:r.length], r.origin})
		text = text[r.length:]
	}
	return out
}

// concat joins strings.
func concat(parts ...str) str {
	var out buffer
	for _, p := range parts {
		out.add(p)
	}
	return out.str()
}
