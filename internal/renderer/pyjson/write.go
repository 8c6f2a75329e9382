// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package pyjson

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Style is a style of writing JSON. The zero value is the style of json.dumps: ", " and ": " between values, and
// escapes for characters beyond ASCII.
type Style struct {
	// Compact leaves out the spaces.
	Compact bool
	// Sorted sorts the names of an object.
	Sorted bool
	// Unicode writes characters beyond ASCII without escapes.
	Unicode bool
}

// JSON writes a value in the style of json.dumps.
func JSON(value any) string { return Style{}.JSON(value) }

// JSON writes a value.
func (s Style) JSON(value any) string {
	var out strings.Builder
	s.write(&out, value)
	return out.String()
}

func (s Style) write(out *strings.Builder, value any) {
	switch v := value.(type) {
	case string:
		s.quote(out, v)
	case []any:
		out.WriteByte('[')
		for i, item := range v {
			s.separate(out, i)
			s.write(out, item)
		}
		out.WriteByte(']')
	case *Object:
		s.object(out, v)
	case float64:
		out.WriteString(number(v, "NaN", "Infinity"))
	default:
		out.WriteString(word(v, "null", "true", "false"))
	}
}

func (s Style) object(out *strings.Builder, o *Object) {
	fields := o.Fields
	if s.Sorted {
		fields = slices.SortedFunc(slices.Values(fields), func(a, b Field) int { return cmp.Compare(a.Name, b.Name) })
	}
	out.WriteByte('{')
	for i, f := range fields {
		s.separate(out, i)
		s.quote(out, f.Name)
		out.WriteByte(':')
		if !s.Compact {
			out.WriteByte(' ')
		}
		s.write(out, f.Value)
	}
	out.WriteByte('}')
}

func (s Style) separate(out *strings.Builder, i int) {
	if i == 0 {
		return
	}
	out.WriteByte(',')
	if !s.Compact {
		out.WriteByte(' ')
	}
}

// short has the escapes of one letter.
var short = map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\f': `\f`, '\b': `\b`}

func (s Style) quote(out *strings.Builder, text string) {
	out.WriteByte('"')
	for len(text) > 0 {
		r, size := decode(text)
		text = text[size:]
		escape, ok := short[r]
		switch {
		case ok:
			out.WriteString(escape)
		case r >= ' ' && r <= '~', r > '~' && s.Unicode:
			out.WriteRune(r)
		case r > 0xFFFF:
			unit(out, 0xD800+(r-0x10000)>>10)
			unit(out, 0xDC00+(r-0x10000)&0x3FF)
		default:
			unit(out, r)
		}
	}
	out.WriteByte('"')
}

func unit(out *strings.Builder, r rune) {
	const digits = "0123456789abcdef"
	out.WriteString(`\u`)
	for shift := 12; shift >= 0; shift -= 4 {
		out.WriteByte(digits[r>>shift&0xF])
	}
}

// Str returns the text of a value as str() does: True, None, 1e-05, and containers as by repr(). A lone surrogate,
// which UTF-8 cannot represent, becomes U+FFFD.
func Str(value any) string {
	if text, ok := value.(string); ok {
		return Text(text)
	}
	var out strings.Builder
	source(&out, value)
	return out.String()
}

// Text returns a string with U+FFFD in place of lone surrogates.
func Text(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var out strings.Builder
	for len(text) > 0 {
		r, size := decode(text)
		out.WriteRune(r)
		text = text[size:]
	}
	return out.String()
}

// source writes a value as repr() does.
func source(out *strings.Builder, value any) {
	switch v := value.(type) {
	case string:
		quoted(out, v)
	case []any:
		out.WriteByte('[')
		for i, item := range v {
			Style{}.separate(out, i)
			source(out, item)
		}
		out.WriteByte(']')
	case *Object:
		out.WriteByte('{')
		for i, f := range v.Fields {
			Style{}.separate(out, i)
			quoted(out, f.Name)
			out.WriteString(": ")
			source(out, f.Value)
		}
		out.WriteByte('}')
	case float64:
		out.WriteString(number(v, "nan", "inf"))
	default:
		out.WriteString(word(v, "None", "True", "False"))
	}
}

// quoted writes a string in the quotes that need no escapes.
func quoted(out *strings.Builder, text string) {
	mark := '\''
	if strings.Contains(text, "'") && !strings.Contains(text, `"`) {
		mark = '"'
	}
	out.WriteRune(mark)
	for _, r := range Text(text) {
		switch {
		case r == mark || r == '\\':
			out.WriteString(`\` + string(r))
		case r == '\n', r == '\r', r == '\t':
			out.WriteString(short[r])
		case r < ' ' || r == 0x7F:
			out.WriteString(`\x` + strconv.FormatInt(int64(r)+0x100, 16)[1:])
		default:
			out.WriteRune(r)
		}
	}
	out.WriteRune(mark)
}

// word writes a value that is a word or a number.
func word(value any, none, yes, no string) string {
	switch v := value.(type) {
	case bool:
		if v {
			return yes
		}
		return no
	case Integer:
		return string(v)
	default:
		return none
	}
}

// number writes a float as repr() does: with the fewest digits that read back as the same number, and with an exponent
// below 1e-4 and from 1e16 on.
func number(v float64, none, infinite string) string {
	switch {
	case math.IsNaN(v):
		return none
	case math.IsInf(v, 1):
		return infinite
	case math.IsInf(v, -1):
		return "-" + infinite
	}
	if size := math.Abs(v); size != 0 && (size < 1e-4 || size >= 1e16) {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	text := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}
