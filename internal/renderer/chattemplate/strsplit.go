// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chattemplate

import (
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
)

// limit reads an argument that limits how often to split or replace. A negative number means no limit.
func (e *evaluator) limit(v any) int {
	n := e.small(v)
	if n < 0 {
		return 1 << 40
	}
	return n
}

func replaceMethod(e *evaluator, s str, a args) any {
	p := a.only(e, "replace", 2, 3)
	before, after := e.text(p[0]), e.text(p[1])
	times := e.limit(integer(-1))
	if len(p) == 3 {
		times = e.limit(p[2])
	}
	if s.markup {
		before, after = escape(before), escape(after)
	}
	e.bytes(len(s.text))
	var out buffer
	i := 0
	for ; times > 0; times-- {
		at := strings.Index(s.text[i:], before.text)
		if before.text == "" && len(out.runs) > 0 {
			at = runeSize(s.text[i:])
		}
		if at < 0 || before.text == "" && i+at > len(s.text) {
			break
		}
		e.bytes(len(after.text) + 32)
		out.add(s.cut(i, i+at))
		out.add(after)
		if i += at + len(before.text); before.text == "" && after.text == "" {
			return s
		}
		if before.text == "" && i == len(s.text) {
			break
		}
		e.room(&out)
	}
	out.add(s.cut(i, len(s.text)))
	return s.like(out.str())
}

// runeSize is the number of bytes of the first character.
func runeSize(text string) int {
	for i := range text {
		if i > 0 {
			return i
		}
	}
	return len(text)
}

func joinMethod(e *evaluator, s str, a args) any {
	var out buffer
	for i, item := range e.items(a.only(e, "join", 1, 1)[0]) {
		text := e.text(item)
		if s.markup {
			text = escape(text)
		}
		e.bytes(len(text.text) + len(s.text))
		e.room(&out)
		if i > 0 {
			out.add(s)
		}
		out.add(text)
	}
	e.room(&out)
	return s.like(out.str())
}

// split is split and, fromEnd, rsplit.
func split(fromEnd bool) strMethod {
	return func(e *evaluator, s str, a args) any {
		p := a.bind(e, "split", 0, "sep", "maxsplit")
		times := e.limit(integer(-1))
		if _, ok := p[1].(unset); !ok {
			times = e.limit(p[1])
		}
		e.bytes(len(s.text))
		out := &list{}
		switch {
		case isUnset(p[0]):
			out.items = s.words(times, fromEnd)
		case e.text(p[0]).text == "":
			e.fail("empty separator")
		default:
			out.items = s.parts(e.text(p[0]).text, times, fromEnd)
		}
		e.spend(len(out.items))
		return out
	}
}

// parts splits at a separator.
func (s str) parts(sep string, times int, fromEnd bool) []any {
	var out []any
	begin, end := 0, len(s.text)
	for ; times > 0; times-- {
		if fromEnd {
			i := strings.LastIndex(s.text[:end], sep)
			if i < 0 {
				break
			}
			out = append(out, s.cut(i+len(sep), end))
			end = i
			continue
		}
		i := strings.Index(s.text[begin:], sep)
		if i < 0 {
			break
		}
		out = append(out, s.cut(begin, begin+i))
		begin += i + len(sep)
	}
	out = append(out, s.cut(begin, end))
	if fromEnd {
		slices.Reverse(out)
	}
	return out
}

// words splits at white space.
func (s str) words(times int, fromEnd bool) []any {
	var out []any
	begin, end := 0, len(s.text)
	for {
		begin = len(s.text) - len(pyjson.StripLeft(s.text[begin:]))
		end = begin + len(pyjson.StripRight(s.text[begin:max(begin, end)]))
		if begin >= end {
			break
		}
		if times--; times < 0 {
			if !fromEnd {
				end = len(s.text)
			} else {
				begin = 0
			}
			out = append(out, s.cut(begin, end))
			break
		}
		if fromEnd {
			i := strings.LastIndexFunc(s.text[:end], pyjson.IsSpace)
			first := 0
			if i >= 0 {
				first = i + runeSize(s.text[i:])
			}
			out = append(out, s.cut(first, end))
			end, begin = first, 0
			continue
		}
		i := strings.IndexFunc(s.text[begin:], pyjson.IsSpace)
		if i < 0 {
			i = end - begin
		}
		out = append(out, s.cut(begin, begin+i))
		begin += i
		end = len(s.text)
	}
	if fromEnd {
		slices.Reverse(out)
	}
	return out
}

func splitLines(e *evaluator, s str, a args) any {
	p := a.bind(e, "splitlines", 0, "keepends")
	out := &list{}
	e.bytes(len(s.text))
	for _, line := range s.lines(given(e, p[0])) {
		out.items = append(out.items, line)
	}
	e.spend(len(out.items))
	return out
}

// lines splits at the line boundaries of Python.
func (s str) lines(keep bool) []str {
	var out []str
	begin := 0
	for i, r := range s.text {
		if i < begin || !strings.ContainsRune("\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029", r) {
			continue
		}
		end := i + len(string(r))
		if r == '\r' && strings.HasPrefix(s.text[end:], "\n") {
			end++
		}
		if keep {
			out = append(out, s.cut(begin, end))
		} else {
			out = append(out, s.cut(begin, i))
		}
		begin = end
	}
	if begin < len(s.text) {
		out = append(out, s.cut(begin, len(s.text)))
	}
	return out
}

func partition(fromEnd bool) strMethod {
	return func(e *evaluator, s str, a args) any {
		sep := e.text(a.only(e, "partition", 1, 1)[0])
		if sep.text == "" {
			e.fail("empty separator")
		}
		e.bytes(len(s.text))
		i := strings.Index(s.text, sep.text)
		if fromEnd {
			i = strings.LastIndex(s.text, sep.text)
		}
		empty := s.cut(0, 0)
		switch {
		case i >= 0:
			end := i + len(sep.text)
			return &list{items: []any{s.cut(0, i), s.cut(i, end), s.cut(end, len(s.text))}, tuple: true}
		case fromEnd:
			return &list{items: []any{empty, empty, s}, tuple: true}
		}
		return &list{items: []any{s, empty, empty}, tuple: true}
	}
}

// pad fills a string up to a width.
func pad(name string, align byte) strMethod {
	return func(e *evaluator, s str, a args) any {
		p := a.only(e, name, 1, 2)
		fill := lit(" ")
		if len(p) == 2 {
			if fill = e.text(p[1]); fill.count() != 1 {
				e.fail("The fill character must be exactly one character long")
			}
		}
		return e.padded(s, e.small(p[0]), align, fill)
	}
}

func (e *evaluator) padded(s str, width int, align byte, fill str) str {
	missing := width - s.count()
	if missing <= 0 {
		return s
	}
	if missing > e.options.MaxOutput {
		e.bytes(missing)
	}
	e.bytes(len(s.text) + missing*len(fill.text))
	left := 0
	switch align {
	case '^':
		left = missing/2 + missing&width&1
	case 'c': // format() has the larger part on the right
		left = missing / 2
	case '>':
		left = missing
	}
	times := func(n int) str {
		return str{text: strings.Repeat(fill.text, n), origin: fill.at(0)}
	}
	return s.like(concat(times(left), s, times(missing-left)))
}

func zeroFill(e *evaluator, s str, a args) any {
	width := e.small(a.only(e, "zfill", 1, 1)[0])
	sign := 0
	if strings.HasPrefix(s.text, "-") || strings.HasPrefix(s.text, "+") {
		sign = 1
	}
	return s.like(concat(s.cut(0, sign), e.padded(s.cut(sign, len(s.text)), width-sign, '>', lit("0"))))
}
