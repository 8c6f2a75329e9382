// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package mathtext

import (
	"math"
	"math/big"
)

// ball is a complex number with a bound of its error, as in ball arithmetic.
type ball struct {
	re, im *big.Float
	// real means that the imaginary part is 0 and has no error.
	real bool
	// err bounds the error of both parts by 2^err.
	err float64
}

// exactly is the err of a value without an error, and the magnitude of 0.
var exactly = math.Inf(-1)

// magnitude returns the smallest e for which the absolute value of x is below 2^e.
func magnitude(x *big.Float) float64 {
	if x.Sign() == 0 {
		return exactly
	}
	return float64(x.MantExp(nil))
}

// magnitude returns an e for which both parts are below 2^e.
func (b ball) magnitude() float64 { return max(magnitude(b.re), magnitude(b.im)) }

// atLeast returns an e for which the absolute value is certainly at least 2^e. It returns false if the value may be 0.
func (b ball) atLeast() (e float64, ok bool) {
	e = b.magnitude() - 2
	return e, e > exactly && e > b.err
}

// asReal returns the value of a function that is real, without the error's imaginary part.
func (b ball) asReal() ball { return ball{re: b.re, im: new(big.Float), real: true, err: b.err} }

// total returns the exponent of a sum of errors.
func total(exponents ...float64) float64 {
	largest := exactly
	for _, e := range exponents {
		largest = max(largest, e)
	}
	if largest == exactly {
		return exactly
	}
	sum := 0.0
	for _, e := range exponents {
		sum += math.Exp2(e - largest)
	}
	return largest + math.Log2(sum)
}

// arithmetic calculates with balls at a precision.
type arithmetic struct{ precision uint }

func (a arithmetic) float() *big.Float { return new(big.Float).SetPrec(a.precision) }

// rounding returns the exponent of the error of rounding numbers of a magnitude. Two bits are for the roundings of
// the parts.
func (a arithmetic) rounding(magnitude float64) float64 { return magnitude - float64(a.precision) + 2 }

func (a arithmetic) fromInt(n int64) ball {
	return ball{re: a.float().SetInt64(n), im: new(big.Float), real: true, err: exactly}
}

func (a arithmetic) fromFloat(x *big.Float) ball {
	return ball{re: a.float().Set(x), im: new(big.Float), real: true, err: a.rounding(magnitude(x))}
}

func (a arithmetic) fromRat(r *big.Rat) ball { return a.fromFloat(a.float().SetRat(r)) }

func (a arithmetic) imaginaryUnit() ball {
	return ball{re: new(big.Float), im: a.float().SetInt64(1), err: exactly}
}

func (a arithmetic) add(x, y ball) ball {
	sum := ball{re: a.float().Add(x.re, y.re), im: new(big.Float), real: x.real && y.real}
	if !sum.real {
		sum.im = a.float().Add(x.im, y.im)
	}
	sum.err = total(x.err, y.err, a.rounding(sum.magnitude()))
	return sum
}

func (a arithmetic) negate(x ball) ball {
	return ball{re: a.float().Neg(x.re), im: a.float().Neg(x.im), real: x.real, err: x.err}
}

func (a arithmetic) subtract(x, y ball) ball { return a.add(x, a.negate(y)) }

func (a arithmetic) multiply(x, y ball) ball {
	product := ball{re: a.float().Mul(x.re, y.re), im: new(big.Float), real: x.real && y.real}
	spread := 0.0
	if !product.real {
		product.re.Sub(product.re, a.float().Mul(x.im, y.im))
		product.im = a.float().Add(a.float().Mul(x.re, y.im), a.float().Mul(x.im, y.re))
		spread = 1
	}
	m, n := x.magnitude(), y.magnitude()
	product.err = total(m+y.err+spread, n+x.err+spread, x.err+y.err+spread, a.rounding(m+n))
	return product
}

// divide returns false if the divisor may be 0.
func (a arithmetic) divide(x, y ball) (ball, bool) {
	least, ok := y.atLeast()
	if !ok {
		return ball{}, false
	}
	var quotient ball
	if y.real {
		quotient = ball{re: a.float().Quo(x.re, y.re), im: new(big.Float), real: x.real}
		if !x.real {
			quotient.im = a.float().Quo(x.im, y.re)
		}
	} else {
		square := a.float().Add(a.float().Mul(y.re, y.re), a.float().Mul(y.im, y.im))
		quotient = a.multiply(x, ball{re: y.re, im: a.float().Neg(y.im), err: exactly})
		quotient.re.Quo(quotient.re, square)
		quotient.im.Quo(quotient.im, square)
	}
	m := x.magnitude()
	quotient.err = total(x.err-least+1, m+y.err-2*least+1, a.rounding(m-least)+2)
	return quotient, true
}

// scale multiplies with 2^e.
func (a arithmetic) scale(x ball, e int) ball {
	return ball{re: a.float().SetMantExp(x.re, e), im: a.float().SetMantExp(x.im, e), real: x.real,
		err: x.err + float64(e)}
}

// sqrt returns the principal square root.
func (a arithmetic) sqrt(x ball) (ball, bool) {
	least, ok := x.atLeast()
	switch {
	case !ok:
		// The value may be 0, so that its root is at most the root of the error.
		zero := a.fromInt(0)
		zero.err = (max(x.err, x.magnitude()) + 3) / 2
		return zero, true
	case x.real && x.re.Sign() > 0:
		root := ball{re: a.float().Sqrt(x.re), im: new(big.Float), real: true}
		root.err = total(x.err-least/2, a.rounding(root.magnitude()))
		return root, true
	case x.real:
		root, ok := a.sqrt(a.negate(x))
		return ball{re: root.im, im: root.re, err: root.err}, ok
	default:
		logarithm, ok := a.log(x)
		if !ok {
			return ball{}, false
		}
		return a.exp(a.scale(logarithm, -1))
	}
}

// integer raises x to a whole exponent by repeated squaring.
func (a arithmetic) integer(x ball, exponent int64) (ball, bool) {
	result, square := a.fromInt(1), x
	for n := max(exponent, -exponent); n > 0; n >>= 1 {
		if n&1 == 1 {
			result = a.multiply(result, square)
		}
		if n > 1 {
			square = a.multiply(square, square)
		}
		if tooFar(square) || tooFar(result) {
			return ball{}, false
		}
	}
	if exponent < 0 {
		return a.divide(a.fromInt(1), result)
	}
	return result, true
}

// largestMagnitude bounds the exponents of values, far below where big.Float overflows.
const largestMagnitude = 1 << 26

func tooFar(x ball) bool {
	m := x.magnitude()
	return m > largestMagnitude || m > exactly && m < -largestMagnitude
}
