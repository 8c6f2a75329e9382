// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package mathtext

import (
	"errors"
	"math/big"
	"strings"
)

// deepestExpression bounds the nesting, whatever a policy writes.
const deepestExpression = 64

var errSyntax = errors.New("not an expression that can be read")

// parser reads the tree of an answer from its tokens.
type parser struct {
	tokens []token
	at     int
	depth  int
	// inAbs means that the next bar closes an absolute value.
	inAbs bool
	// units means that plain words such as cm behind a number are units, and not products of variables.
	units bool
	// sawUnits is set if there are such words, so that units makes a difference.
	sawUnits bool
	// plainUnits counts the plain words that were read as units.
	plainUnits int
	// misread means that words that were read as a unit are not one, since the expression goes on.
	misread bool
}

// parse returns the tree of the whole answer.
func (p *parser) parse() (*node, error) {
	if p.peek().is("=") || p.peek().is("≈") { // Only the right side of a formula.
		p.at++
	}
	n, err := p.list()
	if err == nil && (p.misread || p.peek().kind != kindEnd) {
		err = errSyntax
	}
	return n, err
}

func (p *parser) peek() token { return p.ahead(0) }

func (p *parser) ahead(n int) token {
	if p.at+n < len(p.tokens) {
		return p.tokens[p.at+n]
	}
	return token{}
}

// take removes a sign.
func (p *parser) take(sign string) bool {
	if p.peek().is(sign) {
		p.at++
		return true
	}
	return false
}

// takeAny removes one of the signs, and returns it.
func (p *parser) takeAny(signs ...string) string {
	for _, sign := range signs {
		if p.take(sign) {
			return sign
		}
	}
	return ""
}

func (p *parser) takeCommand(name string) bool {
	if t := p.peek(); t.kind == kindCommand && t.text == name {
		p.at++
		return true
	}
	return false
}

// enter counts the nesting.
func (p *parser) enter() error {
	if p.depth++; p.depth > deepestExpression {
		return errSyntax
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

// list reads elements that commas, "and" and "or" separate.
func (p *parser) list() (*node, error) {
	first, err := p.relation()
	if err != nil {
		return nil, err
	}
	list := &node{op: opList, name: ",", kids: []*node{first}}
	for {
		separator := p.takeAny(",", "or")
		if separator == "" {
			break
		}
		if separator == "or" {
			list.name = "or"
		}
		next, err := p.relation()
		if err != nil {
			return nil, err
		}
		list.kids = append(list.kids, next)
	}
	if len(list.kids) == 1 {
		return first, nil
	}
	return list, nil
}

// relation reads sets or expressions with relations between them.
func (p *parser) relation() (*node, error) {
	first, err := p.ratio()
	if err != nil {
		return nil, err
	}
	chain := &node{op: opRelation, kids: []*node{first}}
	for {
		sign := p.takeAny("=", "<=", ">=", "!=", "<", ">", "≈", "∈")
		if sign == "" {
			break
		}
		next, err := p.ratio()
		if err != nil {
			return nil, err
		}
		chain.name += sign + " "
		chain.kids = append(chain.kids, next)
	}
	if len(chain.kids) == 1 {
		return first, nil
	}
	return chain, nil
}

func (p *parser) ratio() (*node, error) {
	before := p.plainUnits
	first, err := p.sets()
	if err == nil && p.plainUnits > before && first.hasVariables() {
		err = errSyntax // In n+2m the letter m is a variable, too.
	}
	if err != nil || !p.peek().is(":") {
		return first, err
	}
	ratio := apply(opRatio, first)
	for p.take(":") {
		next, err := p.sets()
		if err != nil {
			return nil, err
		}
		ratio.kids = append(ratio.kids, next)
	}
	return ratio, nil
}

// sets reads unions, intersections and differences of sets.
func (p *parser) sets() (*node, error) {
	left, err := p.sum()
	for err == nil {
		operators := map[string]operator{"∪": opUnion, "∩": opIntersection, "∖": opDifference}
		sign := p.takeAny("∪", "∩", "∖")
		if sign == "" {
			return left, nil
		}
		var right *node
		right, err = p.sum()
		left = apply(operators[sign], left, right)
	}
	return nil, err
}

func (p *parser) sum() (*node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	left, err := p.term(p.takeAny("-", "+", "±", "∓"))
	for err == nil {
		sign := p.takeAny("-", "+", "±", "∓")
		if sign == "" {
			return left, nil
		}
		var right *node
		right, err = p.term(sign)
		left = apply(opAdd, left, right)
	}
	return nil, err
}

// term reads a product and gives it the sign that is before it.
func (p *parser) term(sign string) (*node, error) {
	if p.peek().is("-") || p.peek().is("+") { // Another sign, as in a--b.
		if err := p.enter(); err != nil {
			return nil, err
		}
		defer p.leave()
		n, err := p.term(p.takeAny("-", "+"))
		return signed(sign, n), err
	}
	n, err := p.product()
	return signed(sign, n), err
}

func signed(sign string, n *node) *node {
	switch sign {
	case "-":
		return apply(opNegate, n)
	case "±":
		return apply(opPlusMinus, n)
	case "∓":
		return apply(opMinusPlus, n)
	default:
		return n
	}
}

func (p *parser) product() (*node, error) {
	left, err := p.power()
	for err == nil {
		var right *node
		switch {
		case p.take("*"):
			right, err = p.factor()
			left = apply(opMultiply, left, right)
		case p.take("/"):
			right, err = p.divisor(left)
			left = apply(opDivide, left, right)
		case p.startsUnit(left):
			left = p.unit(left)
		case p.startsFactor():
			right, err = p.power()
			left = apply(opMultiply, left, right)
		default:
			return left, nil
		}
	}
	return nil, err
}

// factor reads a factor behind a sign of multiplication, which may have a sign itself.
func (p *parser) factor() (*node, error) {
	if sign := p.takeAny("-", "+"); sign != "" {
		if err := p.enter(); err != nil {
			return nil, err
		}
		defer p.leave()
		n, err := p.factor()
		return signed(sign, n), err
	}
	return p.power()
}

// divisor reads the divisor behind a slash. All factors without signs belong to it, as in abc/4R, unless it is a number
// behind a number: 1/2x is a half of x.
func (p *parser) divisor(left *node) (*node, error) {
	n, err := p.factor()
	if err == nil && left.op == opNumber && n.op == opNumber {
		return n, nil
	}
	for err == nil && p.startsFactor() && !p.startsUnit(left) {
		var next *node
		next, err = p.power()
		n = apply(opMultiply, n, next)
	}
	return n, err
}

// startsFactor reports whether a factor follows that needs no sign before it.
func (p *parser) startsFactor() bool {
	t := p.peek()
	switch t.kind {
	case kindNumber: // Two numbers are not a product.
		return p.at > 0 && p.tokens[p.at-1].kind != kindNumber
	case kindLetter:
		return true
	case kindCommand:
		return t.text != "ldots" && t.text != "circ" && t.text != "choose"
	case kindSign:
		return t.text == "(" || t.text == "{" || t.text == "⌊" || t.text == "⌈" || t.text == "|" && !p.inAbs
	default:
		return false
	}
}

// power reads an atom with its factorials, degrees and exponents.
func (p *parser) power() (*node, error) {
	n, err := p.atom(true)
	for err == nil {
		switch {
		case p.peek().is("!") && p.ahead(1).is("!"):
			p.at += 2
			n = apply(opDoubleFactorial, n)
		case p.take("!"):
			n = apply(opFactorial, n)
		case p.takeDegrees():
			n = apply(opDegrees, n)
		case p.take("^"):
			var exponent *node
			exponent, err = p.exponent()
			n = apply(opPower, n, exponent)
		default:
			return n, nil
		}
	}
	return nil, err
}

// takeDegrees removes the sign of degrees, which LaTeX writes as an exponent.
func (p *parser) takeDegrees() bool {
	isCircle := func(t token) bool { return t.kind == kindCommand && t.text == "circ" }
	switch {
	case isCircle(p.peek()):
		p.at++
	case p.peek().is("^") && isCircle(p.ahead(1)):
		p.at += 2
	case p.peek().is("^") && p.ahead(1).is("{") && isCircle(p.ahead(2)) && p.ahead(3).is("}"):
		p.at += 4
	default:
		return false
	}
	return true
}

// exponent reads an exponent: braces, or a whole number, or one letter or command. Exponents of it belong to it.
func (p *parser) exponent() (*node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	if sign := p.takeAny("-", "+"); sign != "" {
		n, err := p.exponent()
		return signed(sign, n), err
	}
	n, err := p.atom(false)
	if err != nil || p.takeDegrees() || !p.take("^") {
		return n, err
	}
	above, err := p.exponent()
	return apply(opPower, n, above), err
}

// argument reads the argument of a LaTeX command: braces, or one digit, letter or command.
func (p *parser) argument() (*node, error) {
	t := p.peek()
	if t.kind != kindNumber || len(t.text) == 1 {
		if err := p.enter(); err != nil {
			return nil, err
		}
		defer p.leave()
		return p.atom(false)
	}
	if !isDigit(t.text) {
		return nil, errSyntax
	}
	digit := number(int64(t.text[0] - '0'))
	rest := t.text[1:]
	if !isDigit(rest) {
		return nil, errSyntax
	}
	value, ok := new(big.Rat).SetString(rest)
	if !ok {
		return nil, errSyntax
	}
	// The other digits are another number. The tokens belong to other parsers, too.
	p.tokens = append([]token(nil), p.tokens...)
	p.tokens[p.at] = token{kind: kindNumber, text: rest, number: value}
	if p.at > 0 {
		p.tokens[p.at-1] = token{kind: kindSign, text: "digit"}
	}
	return digit, nil
}

// atom reads an operand without an operator. A whole number before a fraction is a mixed number if that is allowed.
func (p *parser) atom(mixed bool) (*node, error) {
	t := p.peek()
	switch t.kind {
	case kindNumber:
		return p.number(mixed)
	case kindLetter:
		return p.letter()
	case kindCommand:
		p.at++
		return p.command(t.text)
	case kindText:
		p.at++
		return &node{op: opText, name: t.text}, nil
	case kindBegin:
		p.at++
		return p.matrix(t.text)
	case kindSign:
		p.at++
		return p.bracketed(t.text)
	default:
		return nil, errSyntax
	}
}

// letter reads a constant or a variable.
func (p *parser) letter() (*node, error) {
	t := p.peek()
	p.at++
	if (t.text == "e" || t.text == "i") && !p.peek().is("_") {
		return &node{op: opConstant, name: t.text}, nil
	}
	return p.indexed(t.text)
}

// indexed reads the primes and the index of a variable, which are parts of its name.
func (p *parser) indexed(name string) (*node, error) {
	for p.take("'") {
		name += "'"
	}
	if p.take("_") {
		index, err := p.index()
		if err != nil {
			return nil, err
		}
		name += "_" + index
	}
	return variable(name), nil
}

// index reads an index as text: braces, or one token.
func (p *parser) index() (string, error) {
	if !p.take("{") {
		t := p.peek()
		p.at++
		if t.kind == kindEnd || t.kind == kindSign {
			return "", errSyntax
		}
		return strings.TrimSpace(canonical([]token{t})), nil
	}
	begin := p.at
	for depth := 1; ; p.at++ {
		t := p.peek()
		switch {
		case t.kind == kindEnd:
			return "", errSyntax
		case t.is("{"):
			depth++
		case t.is("}"):
			depth--
		}
		if depth == 0 {
			p.at++
			return strings.TrimSpace(canonical(p.tokens[begin : p.at-1])), nil
		}
	}
}
