// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package countdown

import (
	"errors"
	"math/big"
	"strings"
)

var errSyntax = errors.New("not an expression")

// deepest bounds the nesting of parentheses and signs.
const deepest = 100

// algebra calculates with values of one kind.
type algebra[V any] interface {
	// number reads a literal.
	number(text string) (V, error)
	negate(a V) V
	// apply applies an operator.
	apply(operator string, a, b V) (V, error)
	// operators returns the operators between factors, longer operators first.
	operators() []string
	// power returns the operator that binds more strongly than a sign, or "" if there is none.
	power() string
}

// parser evaluates an expression while it reads it.
type parser[V any] struct {
	algebra[V]
	rest  string
	depth int
}

// evaluate returns the value of the whole text.
func evaluate[V any](text string, a algebra[V]) (V, error) {
	p := &parser[V]{algebra: a, rest: text}
	value, err := p.sum()
	if p.skip(); err == nil && p.rest != "" {
		err = errSyntax
	}
	return value, err
}

func (p *parser[V]) skip() { p.rest = strings.TrimLeft(p.rest, " \t\n\r\f") }

// take removes one of the operators and returns it, or "" if none follows.
func (p *parser[V]) take(operators ...string) string {
	p.skip()
	for _, operator := range operators {
		if rest, ok := strings.CutPrefix(p.rest, operator); ok && operator != "" {
			p.rest = rest
			return operator
		}
	}
	return ""
}

func (p *parser[V]) sum() (V, error) {
	value, err := p.product()
	for err == nil {
		operator := p.take("+", "-")
		if operator == "" {
			break
		}
		value, err = p.combine(operator, value, p.product)
	}
	return value, err
}

func (p *parser[V]) product() (V, error) {
	value, err := p.signed()
	for err == nil {
		operator := p.take(p.operators()...)
		if operator == "" {
			break
		}
		value, err = p.combine(operator, value, p.signed)
	}
	return value, err
}

// combine applies an operator to a value and the next one.
func (p *parser[V]) combine(operator string, left V, next func() (V, error)) (V, error) {
	right, err := next()
	if err != nil {
		return left, err
	}
	return p.apply(operator, left, right)
}

func (p *parser[V]) signed() (V, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > deepest {
		var none V
		return none, errSyntax
	}
	switch p.take("-", "+") {
	case "-":
		value, err := p.signed()
		if err != nil {
			return value, err
		}
		return p.negate(value), nil
	case "+":
		return p.signed()
	}
	value, err := p.atom()
	if err != nil || p.take(p.power()) == "" {
		return value, err
	}
	return p.combine(p.power(), value, p.signed)
}

func (p *parser[V]) atom() (V, error) {
	if p.take("(") != "" {
		value, err := p.sum()
		if err == nil && p.take(")") == "" {
			err = errSyntax
		}
		return value, err
	}
	end := len(p.rest) - len(strings.TrimLeft(p.rest, "0123456789."))
	text := p.rest[:end]
	p.rest = p.rest[end:]
	return p.number(text)
}

// exact calculates with rational numbers.
type exact struct{}

func (exact) number(text string) (*big.Rat, error) {
	if !isInteger(text) {
		return nil, errSyntax
	}
	value, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, errSyntax
	}
	return value, nil
}

// isInteger reports whether the text is an integer as Python writes it, which has no leading zeros.
func isInteger(text string) bool {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return false
	}
	return text[0] != '0' || strings.Trim(text, "0") == ""
}

func (exact) negate(a *big.Rat) *big.Rat { return new(big.Rat).Neg(a) }

func (exact) operators() []string { return []string{"*", "/"} }

func (exact) power() string { return "" }

func (exact) apply(operator string, a, b *big.Rat) (*big.Rat, error) {
	switch operator {
	case "+":
		return new(big.Rat).Add(a, b), nil
	case "-":
		return new(big.Rat).Sub(a, b), nil
	case "*":
		return new(big.Rat).Mul(a, b), nil
	}
	if b.Sign() == 0 {
		return nil, errors.New("division by zero")
	}
	return new(big.Rat).Quo(a, b), nil
}

// calculateExactly returns the value of an expression.
func calculateExactly(text string) (*big.Rat, error) {
	return evaluate(text, algebra[*big.Rat](exact{}))
}
