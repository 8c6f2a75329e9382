// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chattemplate

import (
	"regexp"
	"strconv"
	"strings"
)

func formatMethod(e *evaluator, s str, a args) any {
	d := newDict()
	for i, name := range a.names {
		d.set(e, lit(name), a.named[i])
	}
	return e.format(s, &formatting{values: a.values, named: d})
}

func formatMap(e *evaluator, s str, a args) any {
	p := a.only(e, "format_map", 1, 1)
	d, ok := p[0].(*dict)
	if !ok {
		e.fail("format_map needs a mapping")
	}
	return e.format(s, &formatting{named: d})
}

// formatting is the state of a format().
type formatting struct {
	values []any
	named  *dict
	next   int // the number of the next field without a name, or -1 when fields have numbers
}

// format replaces the fields of a string.
func (e *evaluator) format(s str, f *formatting) str {
	var out buffer
	for i := 0; i < len(s.text); {
		c := s.text[i]
		doubled := i+1 < len(s.text) && s.text[i+1] == c
		switch {
		case c != '{' && c != '}':
			out.add(s.cut(i, i+1))
			i++
		case doubled:
			out.add(s.cut(i, i+1))
			i += 2
		case c == '}':
			e.fail("Single '}' encountered in format string")
		default:
			end := closing(s.text, i)
			if end < 0 {
				e.fail("expected '}' before end of string")
			}
			text := e.field(s.text[i+1:end], f)
			e.bytes(len(text.text))
			e.room(&out)
			out.add(text)
			i = end + 1
		}
	}
	return s.like(out.str())
}

// closing finds the brace that ends a field.
func closing(text string, at int) int {
	depth := 0
	for i := at; i < len(text); i++ {
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

var (
	fieldName = regexp.MustCompile(`^([^.\[!:]*)((?:\.[^.\[!:]+|\[[^\]]+\])*)(?:!([rs]))?(?::(.*))?$`)
	fieldPath = regexp.MustCompile(`\.([^.\[]+)|\[([^\]]+)\]`)
	miniSpec  = regexp.MustCompile(`^(?:(.)?([<>=^]))?([-+ ]?)(#?)(0?)([0-9]*)(,?)(?:\.([0-9]+))?([a-zA-Z%]?)$`)
)

func (e *evaluator) field(text string, f *formatting) str {
	m := fieldName.FindStringSubmatch(text)
	if m == nil {
		e.fail("the field {%s} cannot be read", text)
	}
	value := e.fieldValue(m[1], f)
	for _, step := range fieldPath.FindAllStringSubmatch(m[2], -1) {
		if step[1] != "" {
			value = e.attr(value, step[1])
		} else if n, err := strconv.Atoi(step[2]); err == nil {
			value = e.item(value, integer(n))
		} else {
			value = e.item(value, lit(step[2]))
		}
	}
	switch m[3] {
	case "s":
		value = e.str(value)
	case "r":
		value = e.repr(value)
	}
	detail := m[4]
	if strings.Contains(detail, "{") {
		detail = e.format(lit(detail), f).text
	}
	return e.formatted(value, detail)
}

func (e *evaluator) fieldValue(name string, f *formatting) any {
	n, err := strconv.Atoi(name)
	switch {
	case name == "" && f.next >= 0:
		n = f.next
		f.next++
	case err == nil && f.next <= 0:
		f.next = -1
	case name == "" || err == nil:
		e.fail("cannot switch between manual field specification and automatic field numbering")
	default:
		v, found := f.named.name(name)
		if !found {
			e.fail("the format has no key %s", name)
		}
		return v
	}
	if n >= len(f.values) {
		e.fail("Replacement index %d out of range for positional args tuple", n)
	}
	return f.values[n]
}

// formatted is format() of Python for one value.
func (e *evaluator) formatted(v any, detail string) str {
	if detail == "" {
		return e.str(v)
	}
	m := miniSpec.FindStringSubmatch(detail)
	if m == nil {
		e.fail("Invalid format specifier")
	}
	f := spec{fill: " ", precision: -1, comma: m[7] != "", alternate: m[4] != ""}
	if m[1] != "" {
		f.fill = m[1]
	}
	if m[2] != "" {
		f.align = m[2][0]
	}
	if m[3] != "" {
		f.sign = m[3][0]
	}
	if m[9] != "" {
		f.kind = m[9][0]
	}
	f.width = e.limitedWidth(m[6], 0)
	f.precision = e.limitedWidth(m[8], -1)
	if text, ok := v.(str); ok {
		return e.formattedText(f, text, m[5] != "")
	}
	if !isNumber(v) {
		e.fail("unsupported format string passed to %s.__format__", typeName(v))
	}
	return e.formattedNumber(f, v, m[5] != "")
}

func (e *evaluator) formattedText(f spec, text str, zero bool) str {
	if f.kind != 0 && f.kind != 's' || f.sign != 0 || f.align == '=' || f.comma || f.alternate {
		e.fail("Invalid format specifier for a string")
	}
	if f.align == 0 {
		f.align = '<'
	}
	if zero && f.fill == " " {
		f.fill = "0"
	}
	if f.precision >= 0 {
		text = text.slice(0, min(f.precision, text.count()), 1)
	}
	return e.aligned(f, text)
}

func (e *evaluator) formattedNumber(f spec, v any, zero bool) str {
	if f.align == 0 {
		f.align = '>'
		if zero {
			f.fill, f.align = "0", '='
		}
	} else if zero && f.fill == " " {
		f.fill = "0"
	}
	x, isFloat := v.(float64)
	switch {
	case strings.IndexByte("dxXobfFeEgG%\x00", f.kind) < 0:
		e.fail("Unknown format code '%c'", f.kind)
	case f.kind == 0 && isFloat && f.precision < 0:
		return e.aligned(f, lit(floatText(x)))
	case f.kind == 0 && isFloat:
		f.kind = 'g'
	case f.kind == 0:
		f.kind = 'd'
	}
	if f.kind == 'd' && f.precision >= 0 {
		e.fail("Precision not allowed in integer format specifier")
	}
	return e.numberText(f, v)
}
