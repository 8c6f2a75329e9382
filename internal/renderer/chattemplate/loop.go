// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chattemplate

import "math/big"

// loop is the variable loop of a for.
type loop struct {
	items    []any // the items that were taken from source
	at       int
	source   func() (any, bool)
	ended    bool
	size     int // the length that the iterable reports, or -1
	depth    int
	previous []any
	again    func(over any, depth int) any
}

func (n *forNode) exec(e *evaluator, s *scope) control {
	e.line = n.line
	return n.loop(e, s, e.eval(n.over, s), 0)
}

// fill takes items until there are count, or none is left.
func (l *loop) fill(e *evaluator, count int) bool {
	for len(l.items) < count && !l.ended {
		e.spend(1)
		item, ok := l.source()
		if !ok {
			l.ended = true
			break
		}
		l.items = append(l.items, item)
	}
	return len(l.items) >= count
}

// length returns the number of items. It takes all items if the iterable does not report a length.
func (l *loop) length(e *evaluator) int {
	if l.size < 0 {
		for l.fill(e, len(l.items)+1) {
		}
		l.size = len(l.items)
	}
	return l.size
}

// filtered leaves out items that do not pass the test of the loop.
func (n *forNode) filtered(e *evaluator, s *scope, source func() (any, bool)) func() (any, bool) {
	return func() (any, bool) {
		for {
			item, ok := source()
			if !ok {
				return nil, false
			}
			e.spend(1)
			inner := s.inner()
			e.assign(n.target, item, inner)
			if e.truth(e.eval(n.test, inner)) {
				return item, true
			}
		}
	}
}

func (n *forNode) loop(e *evaluator, s *scope, over any, depth int) control {
	l := &loop{source: e.iterate(over), size: -1, depth: depth}
	if size, ok := length(over); ok && n.test == nil {
		l.size = size
	}
	if n.test != nil {
		l.source = n.filtered(e, s, l.source)
	}
	if n.recursive {
		l.again = func(over any, depth int) (out any) {
			e.nested(func() {
				outer := e.out
				e.out = &buffer{}
				n.loop(e, s, over, depth)
				out = e.out.str()
				e.out = outer
			})
			return out
		}
	}
	finished := false
	for ; l.fill(e, l.at+1); l.at++ {
		if n.peeks {
			l.fill(e, l.at+2)
		}
		inner := s.inner()
		e.assign(n.target, l.items[l.at], inner)
		if n.peeks {
			inner.names["loop"] = l
		}
		c := e.run(n.body, inner)
		if c == breakLoop {
			break
		}
		finished = finished || c == goOn
	}
	if !finished {
		return e.run(n.other, s.inner())
	}
	return goOn
}

// loopAttributes are the attributes of loop that are numbers or booleans.
var loopAttributes = map[string]func(e *evaluator, l *loop) any{
	"index":     func(_ *evaluator, l *loop) any { return integer(l.at + 1) },
	"index0":    func(_ *evaluator, l *loop) any { return integer(l.at) },
	"first":     func(_ *evaluator, l *loop) any { return l.at == 0 },
	"last":      func(e *evaluator, l *loop) any { return !l.fill(e, l.at+2) },
	"length":    func(e *evaluator, l *loop) any { return integer(l.length(e)) },
	"revindex":  func(e *evaluator, l *loop) any { return integer(l.length(e) - l.at) },
	"revindex0": func(e *evaluator, l *loop) any { return integer(l.length(e) - l.at - 1) },
	"depth":     func(_ *evaluator, l *loop) any { return integer(l.depth + 1) },
	"depth0":    func(_ *evaluator, l *loop) any { return integer(l.depth) },
	"previtem": func(_ *evaluator, l *loop) any {
		if l.at == 0 {
			return &undefined{"there is no previous item"}
		}
		return l.items[l.at-1]
	},
	"nextitem": func(e *evaluator, l *loop) any {
		if !l.fill(e, l.at+2) {
			return &undefined{"there is no next item"}
		}
		return l.items[l.at+1]
	},
	"cycle": func(_ *evaluator, l *loop) any {
		return &function{name: "cycle", call: func(e *evaluator, a args) any {
			if len(a.values) == 0 || len(a.names) > 0 {
				e.fail("no items for cycling are given")
			}
			return a.values[l.at%len(a.values)]
		}}
	},
	"changed": func(_ *evaluator, l *loop) any {
		return &function{name: "changed", call: func(e *evaluator, a args) any {
			now := &list{items: a.values, tuple: true}
			if l.previous != nil && e.equal(&list{items: l.previous, tuple: true}, now, 0) {
				return false
			}
			l.previous = append([]any{}, a.values...)
			return true
		}}
	},
}

// recurse is a call of loop.
func (l *loop) recurse(e *evaluator, a args) any {
	if l.again == nil {
		e.fail("only a loop with recursive can be called")
	}
	return l.again(a.bind(e, "loop", 1, "iterable")[0], l.depth+1)
}

// iterate returns a function that gives the items of a value.
func (e *evaluator) iterate(v any) func() (any, bool) {
	if it, ok := v.(*iterator); ok {
		return it.next
	}
	if s, ok := v.(*span); ok {
		i := -1
		return func() (any, bool) {
			i++
			return big.NewInt(int64(s.start) + int64(i)*int64(s.step)), i < s.len()
		}
	}
	var items []any
	switch v := v.(type) {
	case *list:
		items = v.items
	case *dict:
		items = v.keys
	case *view:
		items = v.items()
	case str:
		e.spend(len(v.text))
		items = v.plain().chars()
	case *undefined:
	case *loop:
		return v.rest(e)
	default:
		e.fail("'%s' object is not iterable", typeName(v))
	}
	return each(items)
}

// rest returns the items of a loop that are left.
func (l *loop) rest(e *evaluator) func() (any, bool) {
	return func() (any, bool) {
		if !l.fill(e, l.at+2) {
			return nil, false
		}
		l.at++
		return &list{items: []any{l.items[l.at], l}, tuple: true}, true
	}
}

// each returns the items of a slice.
func each(items []any) func() (any, bool) {
	i := -1
	return func() (any, bool) {
		if i++; i < len(items) {
			return items[i], true
		}
		return nil, false
	}
}

// items returns all items of a value.
func (e *evaluator) items(v any) []any {
	var out []any
	next := e.iterate(v)
	for {
		item, ok := next()
		if !ok {
			return out
		}
		e.spend(1)
		out = append(out, item)
	}
}

func isIterable(v any) bool {
	switch v.(type) {
	case *iterator, *span, *list, *dict, *view, str, *undefined, *loop:
		return true
	}
	return false
}

// length is len() of a value that has one.
func length(v any) (int, bool) {
	switch v := v.(type) {
	case str:
		return v.count(), true
	case *list:
		return len(v.items), true
	case *dict:
		return v.len(), true
	case *view:
		return v.of.len(), true
	case *span:
		return v.len(), true
	case *undefined:
		return 0, true
	}
	return 0, false
}

// length is len() of a value.
func (e *evaluator) length(v any) int {
	if l, ok := v.(*loop); ok {
		return l.length(e)
	}
	n, ok := length(v)
	if !ok {
		e.fail("object of type '%s' has no len()", typeName(v))
	}
	return n
}
