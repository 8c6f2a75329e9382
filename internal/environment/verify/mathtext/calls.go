// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package mathtext

// accents are commands that make another variable of their argument.
var accents = set("overline vec hat bar tilde overrightarrow widehat dot ddot")

// command reads the arguments of a command.
func (p *parser) command(name string) (*node, error) {
	switch {
	case name == "frac" || name == "binom":
		return p.two(name)
	case name == "sqrt" || name == "surd":
		return p.root(name)
	case name == "pi":
		return &node{op: opConstant, name: name}, nil
	case name == "emptyset":
		return apply(opSet), nil
	case name == "reals":
		return reals(), nil
	case functions[name]:
		return p.call(name)
	case greek[name]:
		return p.indexed(`\` + name)
	case accents[name]:
		return p.accented(name)
	default:
		return nil, errSyntax
	}
}

// two reads a command with two arguments.
func (p *parser) two(name string) (*node, error) {
	first, err := p.argument()
	if err != nil {
		return nil, err
	}
	second, err := p.argument()
	if name == "binom" {
		return call(name, first, second), err
	}
	return apply(opDivide, first, second), err
}

// root reads the degree and the radicand of a root. The sign √ reaches over a whole number.
func (p *parser) root(name string) (*node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	degree := number(2)
	if p.take("[") {
		var err error
		if degree, err = p.sum(); err != nil {
			return nil, err
		}
		if !p.take("]") {
			return nil, errSyntax
		}
	}
	read := p.argument
	if name == "surd" {
		read = func() (*node, error) { return p.atom(false) }
	}
	of, err := read()
	return call("root", of, degree), err
}

func (p *parser) accented(name string) (*node, error) {
	content, err := p.index()
	return variable(`\` + name + " " + content), err
}

// call reads the base or the exponent of a function, and its argument.
func (p *parser) call(name string) (*node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	var base, exponent *node
	var err error
	if name == "log" && p.take("_") {
		if base, err = p.argument(); err != nil {
			return nil, err
		}
	}
	if p.take("^") {
		if exponent, err = p.exponent(); err != nil {
			return nil, err
		}
		if isMinusOne(exponent) {
			// This is the inverse function, and not the reciprocal.
			if !trigonometric[name] {
				return nil, errSyntax
			}
			name, exponent = "arc"+name, nil
		}
	}
	of, err := p.callArgument(name)
	if err != nil {
		return nil, err
	}
	n := call(name, of)
	if base != nil {
		n.kids = append(n.kids, base)
	}
	if exponent != nil {
		n = apply(opPower, n, exponent)
	}
	return n, nil
}

func isMinusOne(n *node) bool { return n.op == opNegate && n.kids[0].equal(number(1)) }

// callArgument reads the argument of a function: the content of brackets or braces, or else all factors up to the next
// sign or function, as in \cos 2x\sin x.
func (p *parser) callArgument(name string) (*node, error) {
	t := p.peek()
	if t.kind == kindSign && (t.text == "-" || t.text == "+") {
		p.at++
		n, err := p.callArgument(name)
		return signed(t.text, n), err
	}
	if t.kind == kindSign {
		return p.atom(true)
	}
	left, err := p.power()
	for err == nil {
		t := p.peek()
		next := p.startsFactor() && !p.endsArgument()
		switch {
		case trigonometric[name] && p.angleQuotient(left):
			p.at++
			var below *node
			below, err = p.atom(false)
			left = apply(opDivide, left, below)
		case next && (!t.is("(") || trigonometric[name] && left.op == opNumber):
			var right *node
			right, err = p.power()
			left = apply(opMultiply, left, right)
		default:
			return left, nil
		}
	}
	return nil, err
}

// endsArgument reports whether the next factor does not belong to the argument of a function before it: another
// function, an absolute value, a power of e, or a factor behind a space of LaTeX.
func (p *parser) endsArgument() bool {
	t := p.peek()
	isFunction := t.kind == kindCommand && functions[t.text] && t.text != "sqrt"
	isExponential := t.kind == kindLetter && t.text == "e" && p.ahead(1).is("^")
	return isFunction || isExponential || t.is("|") || t.apart
}

// angleQuotient reports whether a slash and a number continue an angle, as in \sin\pi/6.
func (p *parser) angleQuotient(left *node) bool {
	isPi := func(n *node) bool { return n.op == opConstant && n.name == "pi" }
	return left.contains(isPi) && p.peek().is("/") && p.ahead(1).kind == kindNumber
}
