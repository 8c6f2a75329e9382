// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chattemplate

import (
	"fmt"
	"math/big"
	"strings"
	"unicode"
)

// str is str() of Python. Text that the value does not hold as a string has the origin that the package comment
// describes.
func (e *evaluator) str(v any) str {
	switch v := v.(type) {
	case str:
		return v
	case *undefined:
		return lit("")
	case nil, bool, *big.Int, float64:
		return lit(e.word(v))
	}
	return e.repr(v)
}

// word prints a value that is not a container.
func (e *evaluator) word(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case *big.Int:
		if v.BitLen() > 14284 {
			if text := v.String(); len(strings.TrimLeft(text, "-")) > 4300 {
				e.fail("an integer has more than 4300 digits")
			}
		}
		e.spend(v.BitLen() / 32)
		return v.String()
	case float64:
		return floatText(v)
	case *undefined:
		return "Undefined"
	case *span:
		if v.step == 1 {
			return fmt.Sprintf("range(%d, %d)", v.start, v.stop)
		}
		return fmt.Sprintf("range(%d, %d, %d)", v.start, v.stop, v.step)
	case *iterator:
		return "<generator object " + v.name + ">"
	case *function:
		return "<function " + v.name + ">"
	case *loop:
		return fmt.Sprintf("<LoopContext %d/%d>", v.at+1, v.length(e))
	}
	return "<object>"
}

// repr is repr() of Python.
func (e *evaluator) repr(v any) str {
	var out buffer
	e.source(&out, v, 0)
	return out.str()
}

func (e *evaluator) source(out *buffer, v any, depth int) {
	e.room(out)
	e.deep(depth)
	switch v := v.(type) {
	case str:
		e.bytes(len(v.text))
		if v.markup {
			out.write("Markup(", FromData)
			defer out.write(")", FromData)
		}
		e.quoted(out, v)
	case *list:
		open, end := "[", "]"
		if v.tuple {
			open, end = "(", ")"
			if len(v.items) == 1 {
				end = ",)"
			}
		}
		e.separated(out, open, end, v.items, depth)
	case *dict:
		e.pairs(out, v, depth)
	case *namespace:
		out.write("<Namespace ", FromData)
		e.pairs(out, v.attrs, depth)
		out.write(">", FromData)
	case *view:
		out.write("dict_"+v.kind+"(", FromData)
		e.separated(out, "[", "]", v.items(), depth)
		out.write(")", FromData)
	default:
		out.write(e.word(v), FromTemplate)
	}
}

func (e *evaluator) separated(out *buffer, open, end string, items []any, depth int) {
	out.write(open, FromData)
	for i, item := range items {
		if i > 0 {
			out.write(", ", FromData)
		}
		e.source(out, item, depth+1)
	}
	out.write(end, FromData)
}

func (e *evaluator) pairs(out *buffer, d *dict, depth int) {
	out.write("{", FromData)
	for i, key := range d.keys {
		if i > 0 {
			out.write(", ", FromData)
		}
		e.source(out, key, depth+1)
		out.write(": ", FromData)
		e.source(out, d.values[i], depth+1)
	}
	out.write("}", FromData)
}

// quoted writes a string as its source, in the quotes that need fewer escapes.
func (e *evaluator) quoted(out *buffer, s str) {
	mark := '\''
	if strings.Contains(s.text, "'") && !strings.Contains(s.text, "\"") {
		mark = '"'
	}
	out.write(string(mark), FromData)
	for i, r := range s.text {
		out.write(sourceRune(r, mark), s.at(i))
	}
	out.write(string(mark), FromData)
}

func sourceRune(r, mark rune) string {
	switch {
	case r == mark || r == '\\':
		return "\\" + string(r)
	case r == '\n':
		return "\\n"
	case r == '\r':
		return "\\r"
	case r == '\t':
		return "\\t"
	case r < ' ' || r == 0x7F || r > 0x7F && r <= 0xFF && !isPrintable(r):
		return fmt.Sprintf("\\x%02x", r)
	case isPrintable(r):
		return string(r)
	case r > 0xFFFF:
		return fmt.Sprintf("\\U%08x", r)
	}
	return fmt.Sprintf("\\u%04x", r)
}

// isPrintable is isprintable() of Python for one character.
func isPrintable(r rune) bool { return r == ' ' || unicode.IsPrint(r) }
