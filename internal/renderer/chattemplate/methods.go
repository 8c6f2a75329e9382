// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chattemplate

import (
	"math"
	"math/big"
	"strings"
)

// mutating are the methods that the immutable sandbox hides. Such an attribute is undefined, as is an item of the same
// name that a template reads with a dot.
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
		return bound(v, name, strMethods[name])
	case *dict:
		return bound(v, name, dictMethods[name])
	case *list:
		if v.tuple && name == "copy" {
			return nil, false
		}
		return bound(v, name, listMethods[name])
	case *namespace:
		return v.attrs.name(name)
	case *loop:
		if f, ok := loopAttributes[name]; ok {
			return f(e, v), true
		}
	case *span:
		return e.spanAttribute(v, name)
	case *function:
		if v.attr != nil {
			return v.attr(name)
		}
	}
	if f, ok := of.(float64); ok {
		return realAttribute(f, name)
	}
	if n := asInt(of); n != nil {
		return wholeAttribute(n, name)
	}
	return nil, false
}

func (e *evaluator) spanAttribute(v *span, name string) (any, bool) {
	if name == "count" || name == "index" {
		return bound(&list{items: e.items(v)}, name, listMethods[name])
	}
	n, ok := map[string]int{"start": v.start, "stop": v.stop, "step": v.step}[name]
	return integer(n), ok
}

// bound returns a method bound to its value, if there is such a method.
func bound[V any, M ~func(e *evaluator, of V, a args) any](of V, name string, method M) (any, bool) {
	if method == nil {
		return nil, false
	}
	return &function{name: name, call: func(e *evaluator, a args) any { return method(e, of, a) }}, true
}

// realAttribute finds an attribute of a float.
func realAttribute(f float64, name string) (any, bool) {
	switch name {
	case "real":
		return f, true
	case "imag":
		return 0.0, true
	case "is_integer":
		return &function{name: name, call: func(e *evaluator, a args) any {
			a.only(e, name, 0, 0)
			return f == math.Trunc(f) && !math.IsInf(f, 0)
		}}, true
	}
	return nil, false
}

// wholeAttribute finds an attribute of an integer.
func wholeAttribute(n *big.Int, name string) (any, bool) {
	switch name {
	case "real", "numerator":
		return n, true
	case "imag":
		return new(big.Int), true
	case "denominator":
		return big.NewInt(1), true
	case "bit_length":
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
