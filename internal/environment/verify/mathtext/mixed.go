// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package mathtext

import "math/big"

// number reads a number, a number in another base, or a mixed number.
func (p *parser) number(mixed bool) (*node, error) {
	t := p.peek()
	p.at++
	if t.number == nil {
		return nil, errSyntax
	}
	if p.peek().is("_") {
		return p.indexed(t.text)
	}
	n := &node{op: opNumber, number: t.number}
	if !mixed || !isWhole(t) {
		return n, nil
	}
	above, below, size := p.fraction()
	if size == 0 {
		return n, nil
	}
	p.at += size
	fraction := new(big.Rat).SetFrac(above.Num(), below.Num())
	return &node{op: opNumber, number: fraction.Add(fraction, t.number)}, nil
}

func isWhole(t token) bool {
	return t.kind == kindNumber && t.number != nil && prefix(t.text, isDigit) == t.text
}

// fraction looks ahead for a fraction of whole numbers: \frac with digits, or digits, a slash and digits after a space.
func (p *parser) fraction() (above, below *big.Rat, size int) {
	first, slash, second := p.peek(), p.ahead(1), p.ahead(2)
	if isWhole(first) && first.spaced && slash.is("/") && isWhole(second) && second.number.Sign() > 0 {
		return first.number, second.number, 3
	}
	if first.kind != kindCommand || first.text != "frac" {
		return nil, nil, 0
	}
	if t := p.ahead(1); isWhole(t) && len(t.text) == 2 && t.text[1] != '0' { // As in \frac12.
		return big.NewRat(int64(t.text[0]-'0'), 1), big.NewRat(int64(t.text[1]-'0'), 1), 2
	}
	above, size = p.wholeArgument(1)
	if above == nil {
		return nil, nil, 0
	}
	below, end := p.wholeArgument(1 + size)
	if below == nil || below.Sign() == 0 {
		return nil, nil, 0
	}
	return above, below, 1 + size + end
}

// wholeArgument looks ahead for a whole number in braces, or of one digit.
func (p *parser) wholeArgument(at int) (value *big.Rat, size int) {
	switch t := p.ahead(at); {
	case t.is("{") && isWhole(p.ahead(at+1)) && p.ahead(at+2).is("}"):
		return p.ahead(at + 1).number, 3
	case isWhole(t) && len(t.text) == 1:
		return t.number, 1
	default:
		return nil, 0
	}
}
