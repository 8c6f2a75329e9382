// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package mathtext

import (
	"errors"
	"math/big"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// These bounds keep parsing fast, whatever a policy writes.
const (
	longestExpression = 2000
	deepestExpression = 64
	longestWord       = 2
)

var errSyntax = errors.New("not an expression that can be read")

// parser reads an expression without spaces.
type parser struct {
	rest  string
	depth int
	// inAbs means that the next bar closes an absolute value.
	inAbs bool
}

// parse returns the expression that the whole text is.
func parse(text string) (*node, error) {
	if len(text) > longestExpression {
		return nil, errSyntax
	}
	p := &parser{rest: text}
	n, err := p.sum()
	if err != nil {
		return nil, err
	}
	if p.rest != "" {
		return nil, errSyntax
	}
	return n, nil
}

// take removes a prefix.
func (p *parser) take(prefix string) bool {
	rest, ok := strings.CutPrefix(p.rest, prefix)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *parser) takeAny(prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, p.takeCommand)
}

// takeCommand removes a prefix; if that is a LaTeX command, no letter may follow.
func (p *parser) takeCommand(prefix string) bool {
	rest, ok := strings.CutPrefix(p.rest, prefix)
	if !ok || strings.HasPrefix(prefix, `\`) && startsWithLetter(rest) {
		return false
	}
	p.rest = rest
	return true
}

func startsWithLetter(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return r < utf8.RuneSelf && unicode.IsLetter(r)
}

// enter counts the depth; leave must follow.
func (p *parser) enter() error {
	if p.depth++; p.depth > deepestExpression {
		return errSyntax
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

func (p *parser) sum() (*node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	left, err := p.product()
	for err == nil {
		var right *node
		switch {
		case p.takeAny("+"):
			right, err = p.product()
			left = &node{op: opAdd, kids: []*node{left, right}}
		case p.takeAny("-", "−", "–"):
			right, err = p.product()
			left = &node{op: opAdd, kids: []*node{left, {op: opNegate, kids: []*node{right}}}}
		default:
			return left, nil
		}
	}
	return nil, err
}

func (p *parser) product() (*node, error) {
	left, err := p.signed()
	for err == nil {
		var right *node
		switch {
		case strings.HasPrefix(p.rest, "**"):
			return nil, errSyntax
		case p.takeAny("*", `\cdot`, `\times`, `\ast`, "·", "×", "⋅"):
			right, err = p.signed()
			left = &node{op: opMultiply, kids: []*node{left, right}}
		case p.takeAny("/", `\div`, "÷"):
			right, err = p.signed()
			left = &node{op: opDivide, kids: []*node{left, right}}
		case p.startsFactor():
			right, err = p.power()
			left = adjacent(left, right)
		default:
			return left, nil
		}
	}
	return nil, err
}

// adjacent returns the product of factors without a sign between them. A whole number before a fraction of whole
// numbers is a mixed number: their sum.
func adjacent(left, right *node) *node {
	whole := left.op == opNumber && left.number.IsInt()
	if whole && right != nil && right.op == opDivide && right.latex && right.kids[0].op == opNumber && right.kids[1].op == opNumber {
		return &node{op: opAdd, kids: []*node{left, right}}
	}
	return &node{op: opMultiply, kids: []*node{left, right}}
}

// startsFactor reports whether the rest begins with a factor that needs no sign before it.
func (p *parser) startsFactor() bool {
	r, _ := utf8.DecodeRuneInString(p.rest)
	switch {
	case p.rest == "":
		return false
	case r == '|':
		return !p.inAbs
	case r == '\\':
		return len(p.rest) > 1 && startsWithLetter(p.rest[1:])
	default:
		return r == '(' || r == '{' || r == 'π' || r == '√' || r == '.' || r >= '0' && r <= '9' || startsWithLetter(p.rest)
	}
}

func (p *parser) signed() (*node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	switch {
	case p.takeAny("-", "−", "–"):
		n, err := p.signed()
		return &node{op: opNegate, kids: []*node{n}}, err
	case p.takeAny("+"):
		return p.signed()
	default:
		return p.power()
	}
}

// power reads a factor with its factorials and its exponent.
func (p *parser) power() (*node, error) {
	n, err := p.atom()
	if err != nil {
		return nil, err
	}
	for p.take("!") {
		n = &node{op: opFactorial, kids: []*node{n}}
	}
	if !p.takeAny("**", "^") {
		return n, nil
	}
	exponent, err := p.signed()
	return &node{op: opPower, kids: []*node{n, exponent}}, err
}

func (p *parser) atom() (*node, error) {
	switch {
	case p.take("("):
		return p.closed(")")
	case p.take("{"):
		return p.closed("}")
	case p.take("["):
		return p.closed("]")
	case !p.inAbs && p.take("|"):
		p.inAbs = true
		n, err := p.closed("|")
		p.inAbs = false
		return &node{op: opFunction, name: "abs", kids: []*node{n}}, err
	case p.take("√"):
		n, err := p.argument()
		return &node{op: opFunction, name: "sqrt", kids: []*node{n}}, err
	case p.take("π"):
		return &node{op: opConstant, name: "pi"}, nil
	case strings.HasPrefix(p.rest, `\`):
		return p.command()
	case startsWithLetter(p.rest):
		return p.word()
	default:
		return p.number()
	}
}

// closed reads an expression and what closes it.
func (p *parser) closed(end string) (*node, error) {
	inAbs := p.inAbs
	p.inAbs = end == "|"
	n, err := p.sum()
	p.inAbs = inAbs
	if err == nil && !p.take(end) {
		err = errSyntax
	}
	return n, err
}

// number reads digits with at most one point.
func (p *parser) number() (*node, error) {
	end := 0
	for end < len(p.rest) && (p.rest[end] >= '0' && p.rest[end] <= '9' || p.rest[end] == '.') {
		end++
	}
	value, ok := new(big.Rat).SetString(p.rest[:end])
	if !ok || strings.Count(p.rest[:end], ".") > 1 {
		return nil, errSyntax
	}
	p.rest = p.rest[end:]
	return &node{op: opNumber, number: value}, nil
}

// argument reads the argument of a LaTeX command: braces, or one digit, letter or command.
func (p *parser) argument() (*node, error) {
	switch {
	case p.rest == "":
		return nil, errSyntax
	case p.take("{"):
		return p.closed("}")
	case p.rest[0] >= '0' && p.rest[0] <= '9':
		digit := int64(p.rest[0] - '0')
		p.rest = p.rest[1:]
		return &node{op: opNumber, number: big.NewRat(digit, 1)}, nil
	default:
		if err := p.enter(); err != nil {
			return nil, err
		}
		defer p.leave()
		return p.atom()
	}
}
