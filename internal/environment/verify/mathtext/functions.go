// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package mathtext

import "math/big"

// The work of functions, in operations at their precision.
const (
	stepsOfExp      = 150
	stepsOfLog      = 800
	stepsOfCircular = 500
)

// power raises the value of a base.
func (e *evaluator) power(at place, base *node, x, y *value) *value {
	a := arithmetic{at.precision}
	if base.op == opConstant && base.name == "e" {
		return e.costly(a, stepsOfExp)(a.exp(a.of(y)))
	}
	if y.exact == nil {
		return e.logarithmicPower(a, x, y)
	}
	if whole := y.exact; whole.IsInt() {
		if !at.constant && x.exact != nil && bitsOfPower(x.exact, whole.Num()) > mostBitsAtPoint {
			x = &value{ball: a.fromRat(x.exact)}
		}
		return e.wholePower(a, x, whole.Num())
	}
	numerator, denominator := y.exact.Num(), y.exact.Denom()
	root := e.root(a, x, denominator)
	if root == nil {
		return e.logarithmicPower(a, x, y)
	}
	return e.wholePower(a, root, numerator)
}

// bitsOfPower returns about how many bits a power has.
func bitsOfPower(x *big.Rat, exponent *big.Int) int {
	size := max(x.Num().BitLen(), x.Denom().BitLen()) - 1
	switch {
	case size <= 0:
		return 0
	case exponent.BitLen() > 20:
		return mostBits + 1
	default:
		return int(max(exponent.Int64(), -exponent.Int64())) * size
	}
}

// wholePower raises a value to a whole number: exactly if the value is exact.
func (e *evaluator) wholePower(a arithmetic, x *value, exponent *big.Int) *value {
	if x.exact == nil {
		if exponent.CmpAbs(big.NewInt(largestPower)) > 0 || !e.spend(a.cost()*2*exponent.BitLen()) {
			return nil
		}
		return e.costly(a, 0)(a.integer(x.ball, exponent.Int64()))
	}
	num, den := x.exact.Num(), x.exact.Denom()
	if num.Sign() == 0 && exponent.Sign() < 0 {
		return nil
	}
	bits := bitsOfPower(x.exact, exponent)
	if bits > mostBits || !e.spend(costOfBits(bits)) {
		return nil
	}
	n := new(big.Int).Abs(exponent)
	if bits == 0 && n.Sign() > 0 { // 0, 1 or -1: only whether the exponent is even counts.
		n.And(n, big.NewInt(1)).Add(n, big.NewInt(2))
	}
	result := new(big.Rat).SetFrac(new(big.Int).Exp(num, n, nil), new(big.Int).Exp(den, n, nil))
	if exponent.Sign() < 0 {
		result.Inv(result)
	}
	return &value{exact: result}
}

// root returns the root of a degree: the real root of a negative number if the degree is odd. Rational square roots
// are exact, and so are whole roots of whole numbers, unless they are very large.
func (e *evaluator) root(a arithmetic, x *value, degree *big.Int) *value {
	if !degree.IsInt64() || degree.Sign() <= 0 || degree.BitLen() > 20 {
		return nil
	}
	if degree.Int64() == 2 {
		return e.squareRoot(a, x)
	}
	of := a.of(x)
	negative := of.real && of.re.Sign() < 0
	if negative && degree.Bit(0) == 1 {
		of = a.negate(of)
	}
	if _, ok := of.atLeast(); !ok {
		if x.exact != nil {
			return &value{exact: new(big.Rat)}
		}
		return nil
	}
	logarithm, ok := a.log(of)
	if !ok {
		return nil
	}
	exponent, ok := a.divide(logarithm, a.fromInt(degree.Int64()))
	if !ok {
		return nil
	}
	root := e.costly(a, stepsOfLog)(a.exp(exponent))
	if root != nil && negative && degree.Bit(0) == 1 {
		root.ball = a.negate(root.ball)
	}
	return e.wholeRoot(a, x, root, degree)
}

// squareRoot returns the principal square root, exactly if the value is the square of a rational number.
func (e *evaluator) squareRoot(a arithmetic, x *value) *value {
	if x.exact != nil && x.exact.Sign() >= 0 {
		if !e.spend(costOfBits(x.exact.Num().BitLen() + x.exact.Denom().BitLen())) {
			return nil
		}
		root := new(big.Rat).SetFrac(new(big.Int).Sqrt(x.exact.Num()), new(big.Int).Sqrt(x.exact.Denom()))
		if new(big.Rat).Mul(root, root).Cmp(x.exact) == 0 {
			return &value{exact: root}
		}
	}
	return e.costly(a, stepsOfExp)(a.sqrt(a.of(x)))
}

// wholeRoot returns the whole number that a root of a whole number is, or else the root itself.
func (e *evaluator) wholeRoot(a arithmetic, x, root *value, degree *big.Int) *value {
	if root == nil || x.exact == nil || !x.exact.IsInt() || !root.ball.real || root.ball.magnitude() > 256 {
		return root
	}
	near := nearest(root.ball.re, big.NewFloat(1))
	power := e.wholePower(a, &value{exact: new(big.Rat).SetInt(near)}, degree)
	if power != nil && power.exact.Cmp(x.exact) == 0 {
		return &value{exact: new(big.Rat).SetInt(near)}
	}
	return root
}

// logarithmicPower returns e^(y log x).
func (e *evaluator) logarithmicPower(a arithmetic, x, y *value) *value {
	logarithm := e.costly(a, stepsOfLog)(a.log(a.of(x)))
	product := e.multiply(a, logarithm, y)
	if product == nil {
		return nil
	}
	return e.costly(a, stepsOfExp)(a.exp(a.of(product)))
}

// costly returns a function that returns the value of a ball if there is one, and counts the steps that it took.
func (e *evaluator) costly(a arithmetic, steps int) func(ball, bool) *value {
	return func(b ball, ok bool) *value {
		if !e.spend(steps*a.cost()) || !ok || tooFar(b) {
			return nil
		}
		return &value{ball: b}
	}
}

// function applies a function to its arguments.
func (e *evaluator) function(a arithmetic, name string, arguments [2]*value) *value {
	x := arguments[0]
	switch name {
	case "abs":
		return e.abs(a, x)
	case "floor", "ceil":
		return floor(x, name == "ceil")
	case "binom":
		return e.binomial(x, arguments[1])
	case "root":
		degree := arguments[1].exact
		switch {
		case degree == nil || degree.Sign() == 0:
			return nil
		case degree.IsInt() && degree.Sign() > 0:
			return e.root(a, x, degree.Num())
		default:
			return e.logarithmicPower(a, x, &value{exact: new(big.Rat).Inv(degree)})
		}
	case "sqrt":
		return e.root(a, x, big.NewInt(2))
	case "log", "lg":
		return e.logarithm(a, x, arguments[1])
	}
	steps := stepsOfCircular
	switch {
	case name == "exp":
		steps = stepsOfExp
	case name == "ln":
		steps = stepsOfLog
	case !trigonometric[name]:
		steps = 2 * stepsOfLog
	}
	return e.costly(a, steps)(a.elementary(name, a.of(x)))
}

// logarithm returns a logarithm to a base, which defaults to 10. The result is exact if it is a whole number.
func (e *evaluator) logarithm(a arithmetic, x, base *value) *value {
	if base == nil {
		base = &value{exact: big.NewRat(10, 1)}
	}
	above, below := e.costly(a, stepsOfLog)(a.log(a.of(x))), e.costly(a, stepsOfLog)(a.log(a.of(base)))
	if above == nil || below == nil {
		return nil
	}
	return e.wholeLogarithm(a, x, base, e.arithmetic(a, opDivide, above, below))
}

// wholeLogarithm returns the whole number that the logarithm of a rational number to a rational base is, or else the
// logarithm itself.
func (e *evaluator) wholeLogarithm(a arithmetic, x, base, logarithm *value) *value {
	if logarithm == nil || x.exact == nil || base.exact == nil || !logarithm.ball.real {
		return logarithm
	}
	near := nearest(logarithm.ball.re, big.NewFloat(1))
	power := e.wholePower(a, base, near)
	if power != nil && power.exact.Cmp(x.exact) == 0 {
		return &value{exact: new(big.Rat).SetInt(near)}
	}
	return logarithm
}

func (e *evaluator) abs(a arithmetic, x *value) *value {
	switch {
	case x.exact != nil:
		return &value{exact: new(big.Rat).Abs(x.exact)}
	case x.ball.real:
		absolute := x.ball
		absolute.re = a.float().Abs(x.ball.re)
		return &value{ball: absolute}
	default:
		conjugate := x.ball
		conjugate.im = a.float().Neg(x.ball.im)
		return e.costly(a, stepsOfExp)(a.sqrt(a.multiply(x.ball, conjugate).asReal()))
	}
}

// floor rounds down, or up. It returns nil if the value is too near to a whole number to decide.
func floor(x *value, up bool) *value {
	if r := x.exact; r != nil {
		whole := new(big.Int).Div(r.Num(), r.Denom()) // Div rounds down, since the denominator is positive.
		if up && !r.IsInt() {
			whole.Add(whole, big.NewInt(1))
		}
		return &value{exact: new(big.Rat).SetInt(whole)}
	}
	if !x.ball.real || x.ball.magnitude() > 256 || x.ball.err > largestError {
		return nil
	}
	distance := new(big.Float).Sub(x.ball.re, new(big.Float).SetInt(nearest(x.ball.re, big.NewFloat(1))))
	if magnitude(distance) <= x.ball.err+1 {
		return nil
	}
	whole, _ := x.ball.re.Int(nil) // Int rounds to 0.
	switch {
	case up && x.ball.re.Sign() > 0:
		whole.Add(whole, big.NewInt(1))
	case !up && x.ball.re.Sign() < 0:
		whole.Sub(whole, big.NewInt(1))
	}
	return &value{exact: new(big.Rat).SetInt(whole)}
}

// binomial returns the binomial coefficient of whole numbers.
func (e *evaluator) binomial(n, k *value) *value {
	if n.exact == nil || k.exact == nil || !n.exact.IsInt() || !k.exact.IsInt() || n.exact.Sign() < 0 {
		return nil
	}
	if k.exact.Sign() < 0 || k.exact.Cmp(n.exact) > 0 {
		return &value{exact: new(big.Rat)}
	}
	if n.exact.Cmp(big.NewRat(largestFactorial, 1)) > 0 {
		return nil
	}
	size := n.exact.Num().Int64()
	if !e.spend(int(1 + size*size/1024)) {
		return nil
	}
	return &value{exact: new(big.Rat).SetInt(new(big.Int).Binomial(size, k.exact.Num().Int64()))}
}

// elementary returns the value of a function that is made of exp and log.
func (a arithmetic) elementary(name string, x ball) (ball, bool) {
	switch name {
	case "exp":
		return a.exp(x)
	case "ln":
		return a.log(x)
	case "sinh", "cosh", "tanh":
		return a.hyperbolic(name, x)
	case "sin", "cos", "tan", "cot", "sec", "csc":
		return a.circular(name, x)
	default:
		return a.inverse(name, x)
	}
}

// halves returns (e^x - e^-x)/2 and (e^x + e^-x)/2.
func (a arithmetic) halves(x ball) (difference, sum ball, ok bool) {
	up, ok := a.exp(x)
	if !ok {
		return ball{}, ball{}, false
	}
	down, ok := a.divide(a.fromInt(1), up)
	if !ok {
		return ball{}, ball{}, false
	}
	return a.scale(a.subtract(up, down), -1), a.scale(a.add(up, down), -1), true
}

func (a arithmetic) hyperbolic(name string, x ball) (ball, bool) {
	sinh, cosh, ok := a.halves(x)
	switch {
	case !ok || name == "sinh":
		return sinh, ok
	case name == "cosh":
		return cosh, true
	default:
		return a.divide(sinh, cosh)
	}
}

func (a arithmetic) circular(name string, x ball) (ball, bool) {
	difference, cos, ok := a.halves(a.multiply(a.imaginaryUnit(), x))
	if !ok {
		return ball{}, false
	}
	sin := a.negate(a.multiply(a.imaginaryUnit(), difference))
	if x.real {
		sin, cos = sin.asReal(), cos.asReal()
	}
	switch name {
	case "sin":
		return sin, true
	case "cos":
		return cos, true
	case "tan":
		return a.divide(sin, cos)
	case "cot":
		return a.divide(cos, sin)
	case "sec":
		return a.divide(a.fromInt(1), cos)
	default:
		return a.divide(a.fromInt(1), sin)
	}
}

// inverse returns an inverse trigonometric function.
func (a arithmetic) inverse(name string, x ball) (ball, bool) {
	i, one := a.imaginaryUnit(), a.fromInt(1)
	switch name {
	case "arctan", "atan":
		above, ok := a.log(a.add(one, a.multiply(i, x)))
		if !ok {
			return ball{}, false
		}
		below, ok := a.log(a.subtract(one, a.multiply(i, x)))
		if !ok {
			return ball{}, false
		}
		result := a.scale(a.negate(a.multiply(i, a.subtract(above, below))), -1)
		if x.real {
			result = result.asReal()
		}
		return result, true
	case "arccot":
		return a.complement("arctan", x)
	case "arcsin", "asin":
		root, ok := a.sqrt(a.subtract(one, a.multiply(x, x)))
		if !ok {
			return ball{}, false
		}
		result, ok := a.log(a.add(a.multiply(i, x), root))
		if !ok {
			return ball{}, false
		}
		result = a.negate(a.multiply(i, result))
		if x.real && root.real {
			result = result.asReal()
		}
		return result, true
	case "arccos", "acos":
		return a.complement("arcsin", x)
	default:
		return ball{}, false
	}
}

// complement returns pi/2 minus an inverse function.
func (a arithmetic) complement(name string, x ball) (ball, bool) {
	result, ok := a.inverse(name, x)
	if !ok {
		return ball{}, false
	}
	return a.subtract(a.scale(a.fromFloat(pi()), -1), result), true
}
