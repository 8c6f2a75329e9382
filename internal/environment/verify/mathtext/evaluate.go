// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package mathtext

import (
	"hash/fnv"
	"math/big"
)

// These bounds keep exact numbers small. A constant beyond them has no value, so that it equals only an answer that
// is written in the same way. A value at a point is inexact beyond them.
const (
	mostBits         = 1 << 18
	mostBitsAtPoint  = 1 << 14
	largestFactorial = 20_000
	largestPower     = 1 << 20
)

// mostSteps bounds the work of one comparison. A step is about the time of a multiplication of two numbers with 512
// bits.
const mostSteps = 500_000

// stepsOfNode is the work of visiting a node.
const stepsOfNode = 4

// value is the value of an expression: exact if it is known to be rational.
type value struct {
	exact *big.Rat
	ball  ball
}

// place is where an expression is evaluated.
type place struct {
	// point decides the values of variables.
	point uint64
	// whole means that variables are whole numbers, as factorials need them.
	whole     bool
	precision uint
	// constant means that there are no variables.
	constant bool
}

// mostBits returns the bound of exact numbers.
func (p place) mostBits() int {
	if p.constant {
		return mostBits
	}
	return mostBitsAtPoint
}

// evaluator evaluates expressions. It keeps the values of whole expressions, since the elements of lists are compared
// with each other, and since a value is needed again to find a ratio.
type evaluator struct {
	// seed is a part of the seed of the variables' values, so that no reply can know them.
	seed  uint64
	steps int
	known map[evaluation]*value
}

type evaluation struct {
	n  *node
	at place
}

// spend counts steps, and returns false if there are none left.
func (e *evaluator) spend(steps int) bool {
	e.steps += steps
	return e.steps <= mostSteps
}

// valueOf returns the value of a whole expression. It returns nil if there is none, or if it is not known well enough.
func (e *evaluator) valueOf(n *node, at place) *value {
	key := evaluation{n, at}
	v, ok := e.known[key]
	if !ok {
		v = e.at(n, at, false)
		e.known[key] = v
	}
	return v
}

// at returns the value of an expression. Degrees are converted within an angle.
func (e *evaluator) at(n *node, at place, angle bool) *value {
	v := e.evaluate(n, at, angle)
	switch {
	case v == nil || v.exact == nil || v.exact.Num().BitLen()+v.exact.Denom().BitLen() <= at.mostBits():
		return v
	case at.constant:
		return nil
	default:
		return &value{ball: arithmetic{at.precision}.fromRat(v.exact)}
	}
}

func (e *evaluator) evaluate(n *node, at place, angle bool) *value {
	if !e.spend(stepsOfNode) || n.op >= opTuple {
		return nil
	}
	a := arithmetic{at.precision}
	switch n.op {
	case opNumber:
		return &value{exact: n.number}
	case opVariable:
		return &value{exact: e.coordinate(n.name, at)}
	case opConstant:
		return e.costly(a, stepsOfExp)(a.constant(n.name))
	case opFunction:
		angle = trigonometric[n.name]
	case opDegrees:
		if angle {
			half := e.at(n.kids[0], at, false)
			return e.multiply(a, half, &value{ball: a.degree()})
		}
		return e.at(n.kids[0], at, false)
	case opUnit:
		return e.at(n.kids[0], at, angle)
	}
	var values [2]*value
	for i, kid := range n.kids {
		if values[i] = e.at(kid, at, angle); values[i] == nil {
			return nil
		}
	}
	switch n.op {
	case opPower:
		return e.power(at, n.kids[0], values[0], values[1])
	case opFactorial, opDoubleFactorial:
		return e.factorial(values[0], n.op)
	case opFunction:
		return e.function(a, n.name, values)
	default:
		return e.arithmetic(a, n.op, values[0], values[1])
	}
}

// arithmetic applies an operator exactly if both values are exact.
func (e *evaluator) arithmetic(a arithmetic, op operator, x, y *value) *value {
	if x.exact != nil && (y == nil || y.exact != nil) {
		return e.exactly(op, x.exact, y)
	}
	p := a.of(x)
	if op == opNegate {
		return &value{ball: a.negate(p)}
	}
	if y == nil {
		return nil
	}
	q := a.of(y)
	result, ok := ball{}, true
	switch op {
	case opAdd:
		result = a.add(p, q)
	case opMultiply:
		result = a.multiply(p, q)
	case opDivide:
		result, ok = a.divide(p, q)
	default:
		ok = false
	}
	if !ok || tooFar(result) || !e.spend(a.cost()) {
		return nil
	}
	return &value{ball: result}
}

func (e *evaluator) multiply(a arithmetic, x, y *value) *value {
	if x == nil {
		return nil
	}
	return e.arithmetic(a, opMultiply, x, y)
}

// exactly applies an operator to rational numbers.
func (e *evaluator) exactly(op operator, x *big.Rat, y *value) *value {
	if op == opNegate {
		return &value{exact: new(big.Rat).Neg(x)}
	}
	if y == nil {
		return nil
	}
	bits := x.Num().BitLen() + x.Denom().BitLen() + y.exact.Num().BitLen() + y.exact.Denom().BitLen()
	if !e.spend(costOfBits(bits)) {
		return nil
	}
	result := new(big.Rat)
	switch op {
	case opAdd:
		result.Add(x, y.exact)
	case opMultiply:
		result.Mul(x, y.exact)
	case opDivide:
		if y.exact.Sign() == 0 {
			return nil
		}
		result.Quo(x, y.exact)
	default:
		return nil
	}
	return &value{exact: result}
}

// costOfBits returns the steps of an operation that reduces a fraction, which grow with the square of its length.
func costOfBits(bits int) int { return 1 + (bits>>9)*(bits>>9)/8 }

// cost returns the steps of an operation at a precision.
func (a arithmetic) cost() int {
	if a.precision > coarsePrecision {
		return 24
	}
	return 1
}

// of returns the value as a ball.
func (a arithmetic) of(v *value) ball {
	if v.exact != nil {
		return a.fromRat(v.exact)
	}
	return v.ball
}

func (a arithmetic) constant(name string) (ball, bool) {
	switch name {
	case "i":
		return a.imaginaryUnit(), true
	case "e":
		return a.exp(a.fromInt(1))
	default:
		return a.fromFloat(pi()), true
	}
}

// degree returns pi/180.
func (a arithmetic) degree() ball {
	d, _ := a.divide(a.fromFloat(pi()), a.fromInt(180))
	return d
}

// factorial returns the product of the whole numbers up to the value, or of every second one.
func (e *evaluator) factorial(v *value, op operator) *value {
	if v.exact == nil || !v.exact.IsInt() || v.exact.Sign() < 0 || v.exact.Cmp(big.NewRat(largestFactorial, 1)) > 0 {
		return nil
	}
	n := v.exact.Num().Int64()
	if !e.spend(int(1 + n*n/4096)) {
		return nil
	}
	product := new(big.Int)
	if op == opFactorial {
		return &value{exact: new(big.Rat).SetInt(product.MulRange(1, n))}
	}
	product.SetInt64(1)
	for ; n > 1; n -= 2 {
		product.Mul(product, big.NewInt(n))
	}
	return &value{exact: new(big.Rat).SetInt(product)}
}

// coordinate returns the value of a variable: a number between 1/4 and 9/4, or its negative, or a whole number.
func (e *evaluator) coordinate(name string, at place) *big.Rat {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name))
	bits := (hash.Sum64() ^ e.seed ^ (at.point+1)*0x9e3779b97f4a7c15) * 0x94d049bb133111eb
	bits ^= bits >> 29
	bits *= 0xbf58476d1ce4e5b9
	bits ^= bits >> 32
	if at.whole {
		return big.NewRat(int64(2+bits%29), 1)
	}
	const fine = 1 << 20
	numerator := fine/4 + int64(bits%(2*fine))
	// Some points have only positive coordinates, where all roots and logarithms are real, and some only negative ones.
	switch {
	case at.point < positivePoints:
	case at.point < positivePoints+negativePoints || bits>>63 == 1:
		numerator = -numerator
	}
	return big.NewRat(numerator, fine)
}
