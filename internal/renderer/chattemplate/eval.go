// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chattemplate

import "fmt"

// evaluator runs the statements of a template. It panics with an *Error on failure, and Render recovers.
type evaluator struct {
	options Options
	steps   int
	depth   int // of calls
	nodes   int // of expressions
	line    int
	out     *buffer
}

// scope has the names of a block. Names are looked up in outer scopes too, and set only in this one.
type scope struct {
	names  map[string]any
	parent *scope
}

func (s *scope) inner() *scope { return &scope{names: map[string]any{}, parent: s} }

func (s *scope) lookup(name string) (any, bool) {
	for ; s != nil; s = s.parent {
		if v, ok := s.names[name]; ok {
			return v, true
		}
	}
	return nil, false
}

func (e *evaluator) fail(format string, values ...any) {
	panic(&Error{Kind: Failed, Message: fmt.Sprintf(format, values...)})
}

// spend counts steps.
func (e *evaluator) spend(steps int) {
	if e.steps += steps; e.steps > e.options.MaxSteps {
		panic(&Error{Kind: Exhausted, Message: fmt.Sprintf("the template takes more than %d steps", e.options.MaxSteps)})
	}
}

// bytes counts the steps of making a text of n bytes, and fails if n is too large.
func (e *evaluator) bytes(n int) {
	if n > e.options.MaxOutput {
		panic(&Error{Kind: Exhausted, Message: fmt.Sprintf("a text is longer than %d bytes", e.options.MaxOutput)})
	}
	e.spend(n / 32)
}

// room counts a step for the growth of a buffer, and fails if the buffer is larger than a text can be.
func (e *evaluator) room(b *buffer) {
	e.spend(1)
	if b.text.Len() > e.options.MaxOutput {
		e.bytes(b.text.Len())
	}
}

// nesting bounds how deeply values and calls nest.
const nesting = 200

func (e *evaluator) deep(depth int) {
	if depth > nesting {
		panic(&Error{Kind: Exhausted, Message: "a value or a call nests too deeply"})
	}
}

// nested counts a call that can recurse.
func (e *evaluator) nested(run func()) {
	e.depth++
	e.deep(e.depth)
	run()
	e.depth--
}

// write appends to the output.
func (e *evaluator) write(s str) {
	e.bytes(len(s.text))
	if total := e.out.text.Len() + len(s.text); total > e.options.MaxOutput {
		e.bytes(total)
	}
	e.out.add(s)
}

// capture runs statements and returns their output.
func (e *evaluator) capture(body []node, s *scope) (str, control) {
	outer := e.out
	e.out = &buffer{}
	c := e.run(body, s)
	text := e.out.str()
	e.out = outer
	return text, c
}

func (e *evaluator) run(body []node, s *scope) control {
	for _, n := range body {
		e.spend(1)
		if c := n.exec(e, s); c != goOn {
			return c
		}
	}
	return goOn
}

// deepestExpression bounds how deeply expressions nest when they run, including long chains of operators and macros.
const deepestExpression = 10_000

func (e *evaluator) eval(x expr, s *scope) any {
	e.spend(1)
	if e.nodes++; e.nodes > deepestExpression {
		e.deep(nesting + 1)
	}
	v := x.eval(e, s)
	e.nodes--
	return v
}

func (n *textNode) exec(e *evaluator, _ *scope) control {
	e.write(lit(n.text))
	return goOn
}

func (n *printNode) exec(e *evaluator, s *scope) control {
	e.line = n.line
	e.write(e.str(e.eval(n.value, s)))
	return goOn
}

func (n *ifNode) exec(e *evaluator, s *scope) control {
	e.line = n.line
	for _, b := range n.branches {
		if e.truth(e.eval(b.test, s)) {
			return e.run(b.body, s)
		}
	}
	return e.run(n.other, s)
}

func (n *setNode) exec(e *evaluator, s *scope) control {
	e.line = n.line
	e.assign(n.target, e.eval(n.value, s), s)
	return goOn
}

func (n *blockSetNode) exec(e *evaluator, s *scope) control {
	inner := s.inner()
	text, c := e.capture(n.body, inner)
	if c != goOn {
		return c
	}
	e.line = n.line
	inner.names[capturedName] = text
	e.assign(n.target, e.eval(n.value, inner), s)
	return goOn
}

func (n *filterNode) exec(e *evaluator, s *scope) control {
	inner := s.inner()
	text, c := e.capture(n.body, inner)
	if c != goOn {
		return c
	}
	e.line = n.line
	inner.names[capturedName] = text
	e.write(e.text(e.eval(n.value, inner)))
	return goOn
}

// capturedName cannot be the name of a variable.
const capturedName = " captured"

func (*captured) eval(_ *evaluator, s *scope) any {
	v, _ := s.lookup(capturedName)
	return v
}

func (n *withNode) exec(e *evaluator, s *scope) control {
	e.line = n.line
	inner := s.inner()
	for i, target := range n.targets {
		e.assign(target, e.eval(n.values[i], s), inner)
	}
	return e.run(n.body, inner)
}

func (n loopControl) exec(*evaluator, *scope) control { return control(n) }

// assign writes a value to a target.
func (e *evaluator) assign(target expr, value any, s *scope) {
	switch t := target.(type) {
	case *nameExpr:
		s.names[t.name] = value
	case *attrRef:
		of, _ := s.lookup(t.name)
		ns, ok := of.(*namespace)
		if !ok {
			e.fail("cannot assign attribute on non-namespace object")
		}
		e.attribute(ns, lit(t.attr), value)
	case *tupleExpr:
		items := e.items(value)
		if len(items) != len(t.items) {
			e.fail("%d values cannot be unpacked into %d names", len(items), len(t.items))
		}
		for i, item := range t.items {
			e.assign(item, items[i], s)
		}
	}
}

// attribute sets an attribute of a namespace, whose names cannot begin with an underscore.
func (e *evaluator) attribute(ns *namespace, name str, value any) {
	if name.text != "" && name.text[0] == '_' {
		e.fail("a namespace cannot have the attribute %s", name.text)
	}
	ns.attrs.set(e, name, value)
}

func (n *macroNode) exec(e *evaluator, s *scope) control {
	s.names[n.name] = e.macro(n, s)
	return goOn
}

func (n *callNode) exec(e *evaluator, s *scope) control {
	e.line = n.line
	caller := e.macro(n.caller, s)
	if n.call == nil {
		e.write(e.str(caller.call(e, args{})))
		return goOn
	}
	f := e.eval(n.call.of, s)
	a := n.call.args.eval(e, s)
	a.names, a.named = append(a.names, "caller"), append(a.named, any(caller))
	e.write(e.str(e.invoke(f, a)))
	return goOn
}

// macro returns the function of a macro.
func (e *evaluator) macro(n *macroNode, s *scope) *function {
	return &function{name: n.name, call: func(e *evaluator, a args) (out any) {
		inner := s.inner()
		e.nested(func() {
			n.bind(e, inner, a)
			out, _ = e.capture(n.body, inner)
		})
		return out
	}}
}

// bind sets the parameters of a macro.
func (n *macroNode) bind(e *evaluator, s *scope, a args) {
	own := false
	missing := map[string]bool{}
	for i, name := range n.params {
		own = own || name == "caller"
		value, given := any(nil), i < len(a.values)
		if given {
			value = a.values[i]
		} else {
			value, given = a.take(name)
		}
		if missing[name] = !given; given {
			s.names[name] = value
		}
	}
	n.extras(e, s, &a, own)
	for i, name := range n.params {
		if !missing[name] {
			continue
		}
		if d := i - len(n.params) + len(n.defaults); d >= 0 {
			s.names[name] = e.eval(n.defaults[d], s)
		} else {
			s.names[name] = &undefined{"parameter '" + name + "' was not provided"}
		}
	}
}

// extras binds caller, kwargs and varargs if the macro reads them, and refuses arguments that nothing takes.
func (n *macroNode) extras(e *evaluator, s *scope, a *args, own bool) {
	if n.uses["caller"] && !own {
		s.names["caller"] = &undefined{"no caller is defined"}
		if caller, ok := a.take("caller"); ok && caller != nil {
			s.names["caller"] = caller
		}
	}
	switch {
	case n.uses["kwargs"]:
		d := newDict()
		for i, name := range a.names {
			d.set(e, lit(name), a.named[i])
		}
		s.names["kwargs"] = d
	case len(a.names) > 0:
		e.fail("macro %s takes no keyword argument %s", n.name, a.names[0])
	}
	rest := a.values[min(len(n.params), len(a.values)):]
	switch {
	case n.uses["varargs"]:
		s.names["varargs"] = &list{items: rest, tuple: true}
	case len(rest) > 0:
		e.fail("macro %s takes not more than %d arguments", n.name, len(n.params))
	}
}
