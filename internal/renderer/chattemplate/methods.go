// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chattemplate

import (
	"math"
	"math/big"
	"strings"
)

// mutating are the methods that the immutable sandbox hides. The attribute is undefined, and so is an item of its name
// that a template reads with a dot.
var mutating = map[string]string{
	"dict": " clear pop popitem setdefault update ",
	"list": " append clear pop reverse insert sort extend remove ",
}

// python finds an attribute that a value has in Python.
func (e *evaluator) python(of any, name string) (any, bool) {
	if strings.Contains(mutating[typeName(of)], " "+name+" ") {
		return &undefined{"access to attribute '" + name + "' of '" + typeName(of) + "' object is unsafe."}, true
	}
	switch v := of.(type) {
	case str:
		if m, ok := strMethods[name]; ok {
			return &function{name: name, call: func(e *evaluator, a args) any { return m(e, v, a) }}, true
		}
	case *dict:
		if m, ok := dictMethods[name]; ok {
			return &function{name: name, call: func(e *evaluator, a args) any { return m(e, v, a) }}, true
		}
	case *list:
		if m, ok := listMethods[name]; ok && (!v.tuple || name != "copy") {
			return &function{name: name, call: func(e *evaluator, a args) any { return m(e, v, a) }}, true
		}
	case *namespace:
		return v.attrs.name(name)
	case *loop:
		if f, ok := loopAttributes[name]; ok {
			return f(e, v), true
		}
	case *span:
		if m, ok := listMethods[name]; ok && name != "copy" {
			return &function{name: name, call: func(e *evaluator, a args) any { return m(e, &list{items: e.items(v)}, a) }}, true
		}
		n, ok := map[string]int{"start": v.start, "stop": v.stop, "step": v.step}[name]
		return integer(n), ok
	case *function:
		if v.attr != nil {
			return v.attr(name)
		}
	}
	return e.numeric(of, name)
}

// numeric finds an attribute of a number.
func (e *evaluator) numeric(of any, name string) (any, bool) {
	f, isFloat := of.(float64)
	n := asInt(of)
	switch {
	case !isFloat && n == nil:
		return nil, false
	case name == "real" && isFloat:
		return f, true
	case name == "imag" && isFloat:
		return 0.0, true
	case name == "is_integer" && isFloat:
		return &function{name: name, call: func(e *evaluator, a args) any {
			a.only(e, name, 0, 0)
			return f == math.Trunc(f) && !math.IsInf(f, 0)
		}}, true
	case isFloat:
		return nil, false
	case name == "real" || name == "numerator":
		return n, true
	case name == "imag":
		return new(big.Int), true
	case name == "denominator":
		return big.NewInt(1), true
	case name == "bit_length":
		return &function{name: name, call: func(e *evaluator, a args) any {
			a.only(e, name, 0, 0)
			return integer(n.BitLen())
		}}, true
	}
	return nil, false
}

var dictMethods = map[string]func(e *evaluator, d *dict, a args) any{
	"get": func(e *evaluator, d *dict, a args) any {
		p := a.only(e, "get", 1, 2)
		v, found, usable := d.get(e, p[0])
		switch {
		case !usable:
			e.fail("unhashable type: '%s'", typeName(p[0]))
		case found:
			return v
		case len(p) == 2:
			return p[1]
		}
		return nil
	},
	"items":  dictView("items"),
	"keys":   dictView("keys"),
	"values": dictView("values"),
	"copy": func(e *evaluator, d *dict, a args) any {
		a.only(e, "copy", 0, 0)
		return e.copyDict(d)
	},
}

func (e *evaluator) copyDict(d *dict) *dict {
	out := newDict()
	for i, key := range d.keys {
		e.spend(1)
		out.set(e, key, d.values[i])
	}
	return out
}

func dictView(kind string) func(e *evaluator, d *dict, a args) any {
	return func(e *evaluator, d *dict, a args) any {
		a.only(e, kind, 0, 0)
		return &view{d, kind}
	}
}

var listMethods = map[string]func(e *evaluator, l *list, a args) any{
	"count": func(e *evaluator, l *list, a args) any {
		n, wanted := 0, a.only(e, "count", 1, 1)[0]
		for _, item := range l.items {
			if e.equal(item, wanted, 0) {
				n++
			}
		}
		return integer(n)
	},
	"index": func(e *evaluator, l *list, a args) any {
		p := a.only(e, "index", 1, 3)
		first, last := 0, len(l.items)
		if len(p) > 1 {
			first = e.bound(p[1], 0, 0, last, last)
		}
		if len(p) > 2 {
			last = e.bound(p[2], last, 0, last, last)
		}
		for i := first; i < last; i++ {
			if e.equal(l.items[i], p[0], 0) {
				return integer(i)
			}
		}
		e.fail("the value is not in the list")
		return nil
	},
	"copy": func(e *evaluator, l *list, a args) any {
		a.only(e, "copy", 0, 0)
		return &list{items: l.items}
	},
}
