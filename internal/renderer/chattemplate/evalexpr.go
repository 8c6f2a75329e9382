// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chattemplate

import (
	"math/big"
	"slices"
)

func (x *constant) eval(*evaluator, *scope) any { return x.value }

func (x *nameExpr) eval(_ *evaluator, s *scope) any {
	if v, ok := s.lookup(x.name); ok {
		return v
	}
	if v, ok := globals[x.name]; ok {
		return v
	}
	return &undefined{"'" + x.name + "' is undefined"}
}

func (x *attrRef) eval(e *evaluator, s *scope) any {
	return e.attr((&nameExpr{x.name}).eval(e, s), x.attr)
}

func (x *tupleExpr) eval(e *evaluator, s *scope) any {
	out := &list{items: make([]any, len(x.items)), tuple: x.tuple}
	for i, item := range x.items {
		out.items[i] = e.eval(item, s)
	}
	return out
}

func (x *dictExpr) eval(e *evaluator, s *scope) any {
	out := newDict()
	for i, key := range x.keys {
		k := e.eval(key, s)
		out.set(e, k, e.eval(x.values[i], s))
	}
	return out
}

func (x *condExpr) eval(e *evaluator, s *scope) any {
	switch {
	case e.truth(e.eval(x.test, s)):
		return e.eval(x.yes, s)
	case x.no == nil:
		return &undefined{"the inline if-expression is false and has no else"}
	}
	return e.eval(x.no, s)
}

func (x *logicExpr) eval(e *evaluator, s *scope) any {
	left := e.eval(x.left, s)
	if e.truth(left) == x.or {
		return left
	}
	return e.eval(x.right, s)
}

func (x *notExpr) eval(e *evaluator, s *scope) any { return !e.truth(e.eval(x.of, s)) }

func (x *compareExpr) eval(e *evaluator, s *scope) any {
	left := e.eval(x.first, s)
	for _, op := range x.ops {
		right := e.eval(op.of, s)
		if !e.compare(op.op, left, right) {
			return false
		}
		left = right
	}
	return true
}

func (x *binaryExpr) eval(e *evaluator, s *scope) any {
	left := e.eval(x.left, s)
	return e.binary(x.op, left, e.eval(x.right, s))
}

func (x *signExpr) eval(e *evaluator, s *scope) any {
	v := e.eval(x.of, s)
	if f, ok := v.(float64); ok {
		if x.negative {
			return -f
		}
		return f
	}
	n := asInt(v)
	if n == nil {
		e.fail("bad operand type for unary sign: '%s'", typeName(v))
	}
	if x.negative {
		return new(big.Int).Neg(n)
	}
	return n
}

func (x *concatExpr) eval(e *evaluator, s *scope) any {
	var out buffer
	for _, part := range x.parts {
		text := e.str(e.eval(part, s))
		e.bytes(out.text.Len() + len(text.text))
		out.add(text)
	}
	return out.str()
}

func (x *attrExpr) eval(e *evaluator, s *scope) any { return e.attr(e.eval(x.of, s), x.name) }

func (x *itemExpr) eval(e *evaluator, s *scope) any {
	of := e.eval(x.of, s)
	return e.item(of, e.eval(x.key, s))
}

func (x *sliceExpr) eval(e *evaluator, s *scope) any {
	of := e.eval(x.of, s)
	part := func(p expr) any {
		if p == nil {
			return nil
		}
		return e.eval(p, s)
	}
	start, stop := part(x.start), part(x.stop)
	return e.slice(of, start, stop, part(x.step))
}

func (x *callExpr) eval(e *evaluator, s *scope) any {
	f := e.eval(x.of, s)
	a := x.args.eval(e, s)
	e.line = x.line
	return e.invoke(f, a)
}

func (x *filterExpr) eval(e *evaluator, s *scope) any {
	of := e.eval(x.of, s)
	a := x.args.eval(e, s)
	e.line = x.line
	return e.filter(x.name, of, a)
}

func (x *testExpr) eval(e *evaluator, s *scope) any {
	of := e.eval(x.of, s)
	a := x.args.eval(e, s)
	e.line = x.line
	return e.test(x.name, of, a)
}

func (e *evaluator) filter(name string, of any, a args) any {
	f := filters[name]
	if f == nil {
		e.fail("no filter is named %s", name)
	}
	return f(e, of, a)
}

func (e *evaluator) test(name string, of any, a args) bool {
	f := tests[name]
	if f == nil {
		e.fail("no test is named %s", name)
	}
	return f(e, of, a)
}

// args are the arguments of a call.
type args struct {
	values []any
	names  []string
	named  []any
}

func (x *arguments) eval(e *evaluator, s *scope) args {
	var out args
	for _, p := range x.positional {
		out.values = append(out.values, e.eval(p, s))
	}
	for i, k := range x.keywords {
		out.names, out.named = append(out.names, x.names[i]), append(out.named, e.eval(k, s))
	}
	if x.list != nil {
		out.values = append(out.values, e.items(e.eval(x.list, s))...)
	}
	if x.mapping == nil {
		return out
	}
	d, ok := e.eval(x.mapping, s).(*dict)
	if !ok {
		e.fail("the argument after ** must be a mapping")
	}
	for i, key := range d.keys {
		name, ok := key.(str)
		if !ok || slices.Contains(out.names, name.text) {
			e.fail("a keyword is no string or is given twice")
		}
		out.names, out.named = append(out.names, name.text), append(out.named, d.values[i])
	}
	return out
}

// take removes a keyword argument and returns it.
func (a *args) take(name string) (any, bool) {
	i := slices.Index(a.names, name)
	if i < 0 {
		return nil, false
	}
	v := a.named[i]
	a.names = slices.Delete(slices.Clone(a.names), i, i+1)
	a.named = slices.Delete(slices.Clone(a.named), i, i+1)
	return v, true
}

// unset is the value of a parameter that was not given.
type unset struct{}

// bind returns the values of named parameters. The first required ones must be given.
func (a args) bind(e *evaluator, function string, required int, names ...string) []any {
	if len(a.values) > len(names) {
		e.fail("%s takes not more than %d arguments", function, len(names))
	}
	out := make([]any, len(names))
	for i, name := range names {
		value, given := a.take(name)
		switch {
		case i < len(a.values) && given:
			e.fail("%s has two values for %s", function, name)
		case i < len(a.values):
			value = a.values[i]
		case !given && i < required:
			e.fail("%s needs the argument %s", function, name)
		case !given:
			value = unset{}
		}
		out[i] = value
	}
	if len(a.names) > 0 {
		e.fail("%s has no argument %s", function, a.names[0])
	}
	return out
}

// only returns the positional arguments of a method that takes no keywords.
func (a args) only(e *evaluator, function string, least, most int) []any {
	if len(a.names) > 0 || len(a.values) < least || len(a.values) > most {
		e.fail("%s has other arguments", function)
	}
	return a.values
}

// invoke calls a value.
func (e *evaluator) invoke(f any, a args) any {
	switch f := f.(type) {
	case *function:
		e.spend(1)
		return f.call(e, a)
	case *loop:
		return f.recurse(e, a)
	case *undefined:
		e.fail("%s", f.message)
	}
	e.fail("'%s' object is not callable", typeName(f))
	return nil
}
