// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chattemplate

import (
	"html"
	"math/big"
	"strings"
)

func (e *evaluator) truth(v any) bool {
	switch v := v.(type) {
	case nil, *undefined:
		return false
	case bool:
		return v
	case *big.Int:
		return v.Sign() != 0
	case float64:
		return v != 0
	case str:
		return v.text != ""
	}
	n, ok := length(v)
	return !ok || n > 0
}

// defined fails if a value is undefined.
func (e *evaluator) defined(values ...any) {
	for _, v := range values {
		if u, ok := v.(*undefined); ok {
			e.fail("%s", u.message)
		}
	}
}

// binary computes left op right.
func (e *evaluator) binary(op string, left, right any) any {
	if text, ok := left.(str); ok && op == "%" {
		return e.percent(text, right)
	}
	e.defined(left, right)
	if isNumber(left) && isNumber(right) {
		return e.arithmetic(op, left, right)
	}
	if op == "+" {
		if sum := e.add(left, right); sum != nil {
			return sum
		}
	}
	if op == "*" {
		if isNumber(left) {
			left, right = right, left
		}
		if n := asInt(right); n != nil {
			if out := e.repeat(left, n); out != nil {
				return out
			}
		}
	}
	e.fail("unsupported operand type(s) for %s: '%s' and '%s'", op, typeName(left), typeName(right))
	return nil
}

// add joins strings and lists, and returns nil for other values.
func (e *evaluator) add(left, right any) any {
	switch a := left.(type) {
	case str:
		b, ok := right.(str)
		if !ok {
			return nil
		}
		e.bytes(len(a.text) + len(b.text))
		if !a.markup && !b.markup {
			return concat(a, b)
		}
		out := concat(escape(a), escape(b))
		out.markup = true
		return out
	case *list:
		b, ok := right.(*list)
		if !ok || a.tuple != b.tuple {
			return nil
		}
		e.spend(len(a.items) + len(b.items))
		items := make([]any, 0, len(a.items)+len(b.items))
		return &list{items: append(append(items, a.items...), b.items...), tuple: a.tuple}
	}
	return nil
}

// repeat returns a string or a list times n.
func (e *evaluator) repeat(v any, n *big.Int) any {
	size, _ := length(v)
	if text, ok := v.(str); ok {
		size = len(text.text)
	}
	count := 0
	if n.Sign() > 0 && size > 0 {
		if !n.IsInt64() || n.Int64() > int64(e.options.MaxOutput) {
			e.bytes(e.options.MaxOutput + 1)
		}
		count = int(n.Int64())
	}
	switch v := v.(type) {
	case str:
		e.bytes(count * size)
		out := str{text: strings.Repeat(v.text, count), origin: v.origin, markup: v.markup}
		if v.origins != "" {
			out.origins = strings.Repeat(v.origins, count)
		}
		return out
	case *list:
		e.spend(count * size)
		out := &list{tuple: v.tuple}
		for range count {
			out.items = append(out.items, v.items...)
		}
		return out
	}
	return nil
}

// escape escapes HTML, unless the text is markup.
func escape(s str) str {
	if s.markup {
		return s
	}
	out := s.mapRunes(func(_ int, r rune) string {
		if r >= 0x80 {
			return string(r)
		}
		return html.EscapeString(string(r))
	})
	out.markup = true
	return out
}

// compare computes a comparison, in and not in.
func (e *evaluator) compare(op string, left, right any) bool {
	switch op {
	case "==":
		return e.equal(left, right, 0)
	case "!=":
		return !e.equal(left, right, 0)
	case "in":
		return e.contains(right, left)
	case "not in":
		return !e.contains(right, left)
	}
	c := e.less(left, right, 0)
	if c == 2 {
		return false
	}
	switch op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

// equal is == of Python.
func (e *evaluator) equal(left, right any, depth int) bool {
	e.spend(1)
	e.deep(depth)
	if isNumber(left) {
		return isNumber(right) && order(left, right) == 0
	}
	switch a := left.(type) {
	case str:
		b, ok := right.(str)
		return ok && a.text == b.text
	case *undefined:
		_, ok := right.(*undefined)
		return ok
	}
	return e.equalCollections(left, right, depth)
}

// equalCollections is == of Python for values that are neither numbers, texts nor undefined.
func (e *evaluator) equalCollections(left, right any, depth int) bool {
	switch a := left.(type) {
	case *list:
		b, ok := right.(*list)
		return ok && a.tuple == b.tuple && e.equalItems(a.items, b.items, depth)
	case *dict:
		b, ok := right.(*dict)
		return ok && e.equalDicts(a, b, depth)
	case *span:
		b, ok := right.(*span)
		return ok && e.equalItems(e.items(a), e.items(b), depth)
	case *view:
		b, ok := right.(*view)
		return ok && (a == b || e.equalViews(a, b, depth))
	}
	return left == right
}

func (e *evaluator) equalItems(a, b []any, depth int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !e.equal(a[i], b[i], depth+1) {
			return false
		}
	}
	return true
}

func (e *evaluator) equalDicts(a, b *dict, depth int) bool {
	if a.len() != b.len() {
		return false
	}
	for hash, i := range a.index {
		j, ok := b.index[hash]
		if !ok || !e.equal(a.values[i], b.values[j], depth+1) {
			return false
		}
	}
	return true
}

// equalViews compares views of keys and of items as sets. A view of values equals only itself.
func (e *evaluator) equalViews(a, b *view, depth int) bool {
	if a.kind == "values" || b.kind == "values" || a.kind != b.kind || a.of.len() != b.of.len() {
		return false
	}
	if a.kind == "items" {
		return e.equalDicts(a.of, b.of, depth)
	}
	for hash := range a.of.index {
		if _, ok := b.of.index[hash]; !ok {
			return false
		}
	}
	return true
}

// less orders two values as order does.
func (e *evaluator) less(left, right any, depth int) int {
	e.spend(1)
	e.deep(depth)
	e.defined(left, right)
	if isNumber(left) && isNumber(right) {
		return order(left, right)
	}
	switch a := left.(type) {
	case str:
		if b, ok := right.(str); ok {
			return strings.Compare(a.text, b.text)
		}
	case *list:
		if b, ok := right.(*list); ok && a.tuple == b.tuple {
			for i := range min(len(a.items), len(b.items)) {
				if !e.equal(a.items[i], b.items[i], depth+1) {
					return e.less(a.items[i], b.items[i], depth+1)
				}
			}
			return len(a.items) - len(b.items)
		}
	}
	e.fail("values of types '%s' and '%s' have no order", typeName(left), typeName(right))
	return 0
}

// contains is item in of.
func (e *evaluator) contains(of, item any) bool {
	switch v := of.(type) {
	case str:
		text, ok := item.(str)
		if !ok {
			e.fail("'in <string>' requires string as left operand, not %s", typeName(item))
		}
		e.spend(len(v.text) / 32)
		return strings.Contains(v.text, text.text)
	case *dict:
		_, found, usable := v.get(e, item)
		if !usable {
			e.fail("unhashable type: '%s'", typeName(item))
		}
		return found
	}
	next := e.iterate(of)
	for {
		candidate, ok := next()
		if !ok {
			return false
		}
		e.spend(1)
		if e.equal(candidate, item, 0) {
			return true
		}
	}
}

// attr is of.name: an attribute of Python, or an item.
func (e *evaluator) attr(of any, name string) any {
	e.defined(of)
	if v, ok := e.python(of, name); ok {
		return v
	}
	return e.lookup(of, lit(name))
}

// item is of[key]: an item, or an attribute of Python.
func (e *evaluator) item(of, key any) any {
	e.defined(of)
	v := e.lookup(of, key)
	if _, missing := v.(*undefined); !missing {
		return v
	}
	if name, ok := key.(str); ok && !hasItem(e, of, key) {
		if v, ok := e.python(of, name.text); ok {
			return v
		}
	}
	return v
}

func hasItem(e *evaluator, of, key any) bool {
	d, ok := of.(*dict)
	if !ok {
		return false
	}
	_, found, _ := d.get(e, key)
	return found
}

// lookup finds an item, or returns undefined.
func (e *evaluator) lookup(of, key any) any {
	if d, ok := of.(*dict); ok {
		if v, found, _ := d.get(e, key); found {
			return v
		}
	}
	if n := asInt(key); n != nil {
		if v, ok := e.index(of, n); ok {
			return v
		}
	}
	return &undefined{"'" + typeName(of) + "' has no " + e.str(e.repr(key)).text}
}

// index finds an item by its number.
func (e *evaluator) index(of any, n *big.Int) (any, bool) {
	size, ok := length(of)
	if _, isView := of.(*view); !ok || isView || !n.IsInt64() {
		return nil, false
	}
	i := int(n.Int64())
	if i < 0 {
		i += size
	}
	if i < 0 || i >= size {
		return nil, false
	}
	switch v := of.(type) {
	case *list:
		return v.items[i], true
	case *span:
		return integer(v.start + i*v.step), true
	case str:
		if v.ascii() {
			return v.cut(i, i+1), true
		}
		e.spend(len(v.text) / 8)
		at := v.offsets()
		return v.cut(at[i], at[i+1]), true
	}
	return nil, false
}
