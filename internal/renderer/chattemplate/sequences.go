// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chattemplate

import (
	"cmp"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

func first(e *evaluator, v any, a args) any {
	a.bind(e, "first", 0)
	if item, ok := e.iterate(v)(); ok {
		return item
	}
	return &undefined{"the sequence of first is empty"}
}

// reversible returns the items of a value that reversed() takes.
func (e *evaluator) reversible(v any) ([]any, bool) {
	switch v.(type) {
	case *iterator, *loop:
		return nil, false
	}
	if !isIterable(v) {
		return nil, false
	}
	items := slices.Clone(e.items(v))
	slices.Reverse(items)
	return items, true
}

func last(e *evaluator, v any, a args) any {
	a.bind(e, "last", 0)
	items, ok := e.reversible(v)
	if !ok {
		e.fail("'%s' object is not reversible", typeName(v))
	}
	if len(items) == 0 {
		return &undefined{"the sequence of last is empty"}
	}
	return items[0]
}

func reverse(e *evaluator, v any, a args) any {
	a.bind(e, "reverse", 0)
	if s, ok := v.(str); ok {
		return s.slice(s.count()-1, -1, -1)
	}
	if items, ok := e.reversible(v); ok {
		return &iterator{each(items), "reversed"}
	}
	items := e.items(v)
	slices.Reverse(items)
	return &list{items: items}
}

func toList(e *evaluator, v any, a args) any {
	a.bind(e, "list", 0)
	return &list{items: slices.Clone(e.items(v))}
}

// lazy returns a generator that begins when its first item is taken.
func lazy(name string, begin func() func() (any, bool)) any {
	var next func() (any, bool)
	return &iterator{func() (any, bool) {
		if next == nil {
			next = begin()
		}
		return next()
	}, name}
}

func itemsFilter(e *evaluator, v any, a args) any {
	a.bind(e, "items", 0)
	return lazy("items", func() func() (any, bool) {
		switch v := v.(type) {
		case *undefined:
			return each(nil)
		case *dict:
			return each((&view{v, "items"}).items())
		}
		e.fail("Can only get item pairs from a mapping.")
		return nil
	})
}

// getter returns a function that finds an attribute, whose name can have dots.
func (e *evaluator) getter(attribute, usual any, fold bool) func(item any) any {
	var parts []any
	switch name := attribute.(type) {
	case nil, unset:
	case str:
		at := 0
		for _, part := range strings.Split(name.text, ".") {
			if n, err := strconv.Atoi(part); err == nil && part[0] != '-' && part[0] != '+' {
				parts = append(parts, integer(n))
			} else {
				parts = append(parts, name.cut(at, at+len(part)))
			}
			at += len(part) + 1
		}
	default:
		parts = []any{attribute}
	}
	return func(item any) any {
		for _, part := range parts {
			item = e.item(item, part)
			if _, missing := item.(*undefined); missing && !isUnset(usual) {
				item = usual
			}
		}
		if s, ok := item.(str); ok && fold {
			return lower(s)
		}
		return item
	}
}

func join(e *evaluator, v any, a args) any {
	p := a.bind(e, "join", 0, "d", "attribute")
	between := lit("")
	if _, ok := p[0].(unset); !ok {
		between = e.str(p[0])
	}
	get := e.getter(p[1], nil, false)
	var out buffer
	next := e.iterate(v)
	for i := 0; ; i++ {
		item, ok := next()
		if !ok {
			return out.str()
		}
		text := e.str(get(item))
		e.bytes(len(text.text) + len(between.text))
		if i > 0 {
			out.add(between)
		}
		out.add(text)
		e.room(&out)
	}
}

func mapFilter(e *evaluator, v any, a args) any {
	return lazy("map", func() func() (any, bool) {
		if !e.truth(v) {
			return each(nil)
		}
		apply := e.mapping(a)
		next := e.iterate(v)
		return func() (any, bool) {
			item, ok := next()
			if !ok {
				return nil, false
			}
			e.spend(1)
			return apply(item), true
		}
	})
}

// mapping returns the function that map applies to each item.
func (e *evaluator) mapping(a args) func(item any) any {
	if attribute, ok := a.take("attribute"); ok && len(a.values) == 0 {
		usual, _ := a.take("default")
		if len(a.names) > 0 {
			e.fail("map has no argument %s", a.names[0])
		}
		return e.getter(attribute, usual, false)
	} else if ok {
		a.names, a.named = append(a.names, "attribute"), append(a.named, attribute)
	}
	if len(a.values) == 0 {
		e.fail("map requires a filter argument")
	}
	name := e.text(a.values[0]).text
	a.values = a.values[1:]
	return func(item any) any { return e.filter(name, item, a) }
}

// choose is select, reject, selectattr and rejectattr.
func choose(keep, attribute bool) filter {
	return func(e *evaluator, v any, a args) any {
		return lazy("select_or_reject", func() func() (any, bool) {
			if !e.truth(v) {
				return each(nil)
			}
			passes := e.chooser(a, attribute)
			next := e.iterate(v)
			return func() (any, bool) {
				for {
					item, ok := next()
					if !ok {
						return nil, false
					}
					e.spend(1)
					if passes(item) == keep {
						return item, true
					}
				}
			}
		})
	}
}

func (e *evaluator) chooser(a args, attribute bool) func(item any) bool {
	get := func(item any) any { return item }
	if attribute {
		if len(a.values) == 0 {
			e.fail("the name of the attribute is missing")
		}
		get = e.getter(a.values[0], nil, false)
		a.values = a.values[1:]
	}
	if len(a.values) == 0 {
		return func(item any) bool { return e.truth(get(item)) }
	}
	name := e.text(a.values[0]).text
	a.values = a.values[1:]
	return func(item any) bool { return e.test(name, get(item), a) }
}

// sorted sorts items by their keys.
func (e *evaluator) sorted(items []any, key func(item any) any, reversed bool) []any {
	type pair struct{ item, key any }
	pairs := make([]pair, len(items))
	for i, item := range items {
		pairs[i] = pair{item, key(item)}
	}
	slices.SortStableFunc(pairs, func(x, y pair) int {
		c := 0
		if l := e.less(x.key, y.key, 0); l != 2 {
			c = cmp.Compare(l, 0)
		}
		if reversed {
			return -c
		}
		return c
	})
	out := make([]any, len(items))
	for i, p := range pairs {
		out[i] = p.item
	}
	return out
}

func sortFilter(e *evaluator, v any, a args) any {
	p := a.bind(e, "sort", 0, "reverse", "case_sensitive", "attribute")
	fold := !given(e, p[1])
	keys := []func(any) any{e.getter(p[2], nil, fold)}
	if name, ok := p[2].(str); ok {
		keys = nil
		at := 0
		for _, part := range strings.Split(name.text, ",") {
			keys = append(keys, e.getter(name.cut(at, at+len(part)), nil, fold))
			at += len(part) + 1
		}
	}
	// The keys are lists, so that equal values need no order.
	key := func(item any) any {
		out := &list{}
		for _, k := range keys {
			out.items = append(out.items, k(item))
		}
		return out
	}
	return &list{items: e.sorted(e.items(v), key, given(e, p[0]))}
}

func dictSort(e *evaluator, v any, a args) any {
	p := a.bind(e, "dictsort", 0, "case_sensitive", "by", "reverse")
	by := "key"
	if _, ok := p[1].(unset); !ok {
		by = e.str(p[1]).text
	}
	if by != "key" && by != "value" {
		e.fail("You can only sort by either \"key\" or \"value\"")
	}
	e.defined(v)
	d, ok := v.(*dict)
	if !ok {
		e.fail("'%s' object has no attribute 'items'", typeName(v))
	}
	at := map[string]any{"key": integer(0), "value": integer(1)}[by]
	key := e.getter(at, nil, !given(e, p[0]))
	return &list{items: e.sorted((&view{d, "items"}).items(), key, given(e, p[2]))}
}

func unique(e *evaluator, v any, a args) any {
	p := a.bind(e, "unique", 0, "case_sensitive", "attribute")
	return lazy("unique", func() func() (any, bool) {
		key := e.getter(p[1], nil, !given(e, p[0]))
		seen := newDict()
		next := e.iterate(v)
		return func() (any, bool) {
			for {
				item, ok := next()
				if !ok {
					return nil, false
				}
				k := key(item)
				if _, found, _ := seen.get(e, k); !found {
					seen.set(e, k, nil)
					return item, true
				}
			}
		}
	})
}

// extreme is max, for 1, and min, for -1.
func extreme(sign int) filter {
	return func(e *evaluator, v any, a args) any {
		p := a.bind(e, "min or max", 0, "case_sensitive", "attribute")
		key := e.getter(p[1], nil, !given(e, p[0]))
		items := e.items(v)
		if len(items) == 0 {
			return &undefined{"No aggregated item, sequence was empty."}
		}
		best, bestKey := items[0], key(items[0])
		for _, item := range items[1:] {
			k := key(item)
			if c := e.less(k, bestKey, 0); c != 2 && c*sign > 0 {
				best, bestKey = item, k
			}
		}
		return best
	}
}

func sum(e *evaluator, v any, a args) any {
	p := a.bind(e, "sum", 0, "attribute", "start")
	get := e.getter(p[0], nil, false)
	out := p[1]
	if _, ok := out.(unset); ok {
		out = integer(0)
	}
	if _, ok := out.(str); ok {
		e.fail("sum() can't sum strings")
	}
	for _, item := range e.items(v) {
		out = e.binary("+", out, get(item))
	}
	return out
}

func groupBy(e *evaluator, v any, a args) any {
	p := a.bind(e, "groupby", 1, "attribute", "default", "case_sensitive")
	fold := !given(e, p[2])
	key, real := e.getter(p[0], p[1], fold), e.getter(p[0], p[1], false)
	out := &list{}
	var group *list
	var last any
	for _, item := range e.sorted(e.items(v), key, false) {
		k := key(item)
		if group == nil || !e.equal(k, last, 0) {
			group, last = &list{}, k
			out.items = append(out.items, &list{items: []any{real(item), group}, tuple: true})
		}
		group.items = append(group.items, item)
	}
	return out
}

func batch(e *evaluator, v any, a args) any {
	p := a.bind(e, "batch", 1, "linecount", "fill_with")
	return lazy("batch", func() func() (any, bool) {
		size := e.small(p[0])
		var out []any
		var row *list
		for _, item := range e.items(v) {
			if row == nil || len(row.items) == size {
				row = &list{}
				out = append(out, row)
			}
			row.items = append(row.items, item)
		}
		for row != nil && !isUnset(p[1]) && len(row.items) < size {
			e.spend(1)
			row.items = append(row.items, p[1])
		}
		return each(out)
	})
}

func sliceFilter(e *evaluator, v any, a args) any {
	p := a.bind(e, "slice", 1, "slices", "fill_with")
	return lazy("slice", func() func() (any, bool) {
		items, count := e.items(v), e.small(p[0])
		if count == 0 {
			e.fail("integer division or modulo by zero")
		}
		e.spend(max(count, 0))
		size := e.whole("//", big.NewInt(int64(len(items))), big.NewInt(int64(count))).(*big.Int)
		width, extra, at := int(size.Int64()), len(items)%max(count, 1), 0
		var out []any
		for i := range max(count, 0) {
			end := at + width
			if i < extra {
				end++
			}
			row := &list{items: slices.Clone(items[at:end])}
			if at = end; i >= extra && !isUnset(p[1]) {
				row.items = append(row.items, p[1])
			}
			out = append(out, row)
		}
		return each(out)
	})
}
