// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package mathtext

import (
	"hash/fnv"
	"math"
	"math/big"
	"math/cmplx"
	"slices"
)

type operator uint8

const (
	opNumber operator = iota
	opConstant
	opVariable
	opAdd
	opNegate
	opMultiply
	opDivide
	opPower
	opFactorial
	opFunction
)

// node is a node of an expression's tree.
type node struct {
	op     operator
	kids   []*node
	number *big.Rat
	// name is that of a constant, variable or function.
	name string
	// latex marks a quotient that was written as \frac.
	latex bool
}

var one = &node{op: opNumber, number: big.NewRat(1, 1)}

// These bounds keep exact numbers small. Beyond them a number is inexact.
const (
	mostBits         = 4096
	largestExponent  = 512
	largestFactorial = 170
)

// exact returns the value of an expression that is a rational number.
func (n *node) exact() (*big.Rat, bool) {
	var values [2]*big.Rat
	switch n.op {
	case opNumber:
		return n.number, true
	case opConstant, opVariable, opFunction:
		return nil, false
	}
	for i, kid := range n.kids {
		value, ok := kid.exact()
		if !ok {
			return nil, false
		}
		values[i] = value
	}
	value, ok := n.calculate(values[0], values[1])
	if !ok || value.Num().BitLen()+value.Denom().BitLen() > mostBits {
		return nil, false
	}
	return value, true
}

// calculate applies the operator to numbers.
func (n *node) calculate(a, b *big.Rat) (*big.Rat, bool) {
	switch n.op {
	case opAdd:
		return new(big.Rat).Add(a, b), true
	case opNegate:
		return new(big.Rat).Neg(a), true
	case opMultiply:
		return new(big.Rat).Mul(a, b), true
	case opDivide:
		if b.Sign() == 0 {
			return nil, false
		}
		return new(big.Rat).Quo(a, b), true
	case opPower:
		return power(a, b)
	case opFactorial:
		if !a.IsInt() || a.Sign() < 0 || a.Cmp(big.NewRat(largestFactorial, 1)) > 0 {
			return nil, false
		}
		return new(big.Rat).SetInt(new(big.Int).MulRange(1, a.Num().Int64())), true
	default:
		return nil, false
	}
}

// power raises a to a whole exponent that is not too large.
func power(a, b *big.Rat) (*big.Rat, bool) {
	if !b.IsInt() || !b.Num().IsInt64() {
		return nil, false
	}
	exponent := b.Num().Int64()
	size := int64(a.Num().BitLen() + a.Denom().BitLen())
	if exponent < -largestExponent || exponent > largestExponent || max(exponent, -exponent)*size > 4*mostBits {
		return nil, false
	}
	if exponent < 0 && a.Sign() == 0 {
		return nil, false
	}
	e := big.NewInt(max(exponent, -exponent))
	value := new(big.Rat).SetFrac(new(big.Int).Exp(a.Num(), e, nil), new(big.Int).Exp(a.Denom(), e, nil))
	if exponent < 0 {
		value.Inv(value)
	}
	return value, true
}

// at returns the value at a point, which decides the values of the variables.
func (n *node) at(point uint64) complex128 {
	var values [2]complex128
	for i, kid := range n.kids {
		values[i] = kid.at(point)
	}
	switch n.op {
	case opNumber:
		value, _ := n.number.Float64()
		return complex(value, 0)
	case opConstant:
		return map[string]complex128{"pi": math.Pi, "e": math.E, "i": 1i}[n.name]
	case opVariable:
		return complex(coordinate(n.name, point), 0)
	case opAdd:
		return values[0] + values[1]
	case opNegate:
		return -values[0]
	case opMultiply:
		return values[0] * values[1]
	case opDivide:
		return values[0] / values[1]
	case opPower:
		return cmplx.Pow(values[0], values[1])
	case opFactorial:
		return complex(math.Gamma(real(values[0])+1), 0)
	default:
		return functions[n.name](values[0])
	}
}

// coordinate returns the value of a variable at a point: a number between 0.25 and 2.25, or its negative.
func coordinate(name string, point uint64) float64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name))
	bits := (hash.Sum64() ^ point*0x9e3779b97f4a7c15) * 0x94d049bb133111eb
	bits ^= bits >> 31
	value := 0.25 + 2*float64(bits>>12)/(1<<52)
	if bits&1 == 1 {
		return -value
	}
	return value
}

// hasVariables reports whether the value depends on a point.
func (n *node) hasVariables() bool {
	return n.op == opVariable || slices.ContainsFunc(n.kids, (*node).hasVariables)
}
