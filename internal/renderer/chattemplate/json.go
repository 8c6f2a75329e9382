// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chattemplate

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
)

// jsonWriter writes values as json.dumps of Python does. Strings keep their origins.
type jsonWriter struct {
	e           *evaluator
	out         buffer
	ascii, sort bool
	indent      *string
	comma       str
	colon       str
}

func toJSON(e *evaluator, v any, a args) any {
	p := a.bind(e, "tojson", 0, "ensure_ascii", "indent", "separators", "sort_keys")
	w := &jsonWriter{e: e, comma: str{text: ", ", origin: FromData}, colon: str{text: ": ", origin: FromData}}
	w.ascii, w.sort = given(e, p[0]), given(e, p[3])
	switch indent := p[1].(type) {
	case nil, unset:
	case str:
		w.indent = &indent.text
	default:
		spaces := strings.Repeat(" ", min(max(e.small(indent), 0), 1000))
		w.indent = &spaces
	}
	if w.indent != nil {
		w.comma.text = ","
	}
	if _, none := p[2].(unset); !none && p[2] != nil {
		parts := e.items(p[2])
		if len(parts) != 2 {
			e.fail("separators must have two items")
		}
		w.comma, w.colon = e.text(parts[0]), e.text(parts[1])
	}
	w.write(v, 0)
	return w.out.str()
}

// given returns the truth of a parameter that defaults to false.
func given(e *evaluator, v any) bool {
	_, none := v.(unset)
	return !none && e.truth(v)
}

// text returns a string, and fails for other values.
func (e *evaluator) text(v any) str {
	s, ok := v.(str)
	if !ok {
		e.defined(v)
		e.fail("a string is expected, not '%s'", typeName(v))
	}
	return s
}

func (w *jsonWriter) write(v any, depth int) {
	w.e.room(&w.out)
	w.e.deep(depth)
	switch v := v.(type) {
	case str:
		w.quote(v)
	case *list:
		w.items("[", "]", len(v.items), depth, func(i int) { w.write(v.items[i], depth+1) })
	case *dict:
		w.dict(v, depth)
	case nil, bool, *big.Int, float64:
		w.out.write(w.word(v), FromTemplate)
	default:
		w.e.fail("Object of type %s is not JSON serializable", typeName(v))
	}
}

func (w *jsonWriter) word(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return fmt.Sprint(v)
	case float64:
		switch {
		case math.IsNaN(v):
			return "NaN"
		case math.IsInf(v, 0):
			return map[bool]string{true: "Infinity", false: "-Infinity"}[v > 0]
		}
	}
	return w.e.word(v)
}

// items writes a list of items in brackets.
func (w *jsonWriter) items(open, end string, count, depth int, item func(i int)) {
	w.out.write(open, FromData)
	for i := range count {
		if i > 0 {
			w.out.add(w.comma)
		}
		w.line(depth + 1)
		item(i)
	}
	if count > 0 {
		w.line(depth)
	}
	w.out.write(end, FromData)
}

func (w *jsonWriter) line(depth int) {
	if w.indent != nil {
		w.e.bytes(len(*w.indent) * depth)
		w.out.write("\n"+strings.Repeat(*w.indent, depth), FromData)
	}
}

func (w *jsonWriter) dict(d *dict, depth int) {
	order := make([]int, d.len())
	for i := range order {
		order[i] = i
	}
	if w.sort {
		slices.SortStableFunc(order, func(i, j int) int {
			return cmp.Compare(w.e.less(d.keys[i], d.keys[j], 0), 0)
		})
	}
	w.items("{", "}", len(order), depth, func(i int) {
		w.key(d.keys[order[i]])
		w.out.add(w.colon)
		w.write(d.values[order[i]], depth+1)
	})
}

func (w *jsonWriter) key(key any) {
	switch key := key.(type) {
	case str:
		w.quote(key)
	case nil, bool, *big.Int, float64:
		w.quote(lit(w.word(key)))
	default:
		w.e.fail("keys must be str, int, float, bool or None, not %s", typeName(key))
	}
}

// jsonEscapes are the escapes of one letter.
var jsonEscapes = map[rune]string{
	'"': "\\\"", '\\': "\\\\", '\n': "\\n", '\r': "\\r", '\t': "\\t", '\f': "\\f", '\b': "\\b",
}

func (w *jsonWriter) quote(s str) {
	w.e.bytes(len(s.text))
	w.out.write("\"", FromData)
	for i, r := range s.text {
		escape, ok := jsonEscapes[r]
		switch {
		case ok:
		case r < ' ', w.ascii && r > '~' && r <= 0xFFFF:
			escape = fmt.Sprintf("\\u%04x", r)
		case w.ascii && r > 0xFFFF:
			r -= 0x10000
			escape = fmt.Sprintf("\\u%04x\\u%04x", 0xD800+r>>10, 0xDC00+r&0x3FF)
		default:
			escape = string(r)
		}
		w.out.write(escape, s.at(i))
	}
	w.out.write("\"", FromData)
}
