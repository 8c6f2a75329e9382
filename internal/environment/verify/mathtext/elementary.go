// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package mathtext

import (
	"math"
	"math/big"
	"math/cmplx"
	"sync"
)

const (
	// largestAngle bounds the exponents of imaginary parts whose periods are removed.
	largestAngle = 256
	// constantPrecision is the precision of pi and ln 2. It exceeds the precision of any calculation.
	constantPrecision = finePrecision + 1024
	// guard bits are for the roundings within a function.
	guard = 64
)

// inverseSeries returns the inverse tangent of 1/n, or for sign 1 the inverse hyperbolic tangent, times
// 2^constantPrecision.
func inverseSeries(n, sign int64) *big.Int {
	term := new(big.Int).Lsh(big.NewInt(1), constantPrecision)
	term.Quo(term, big.NewInt(n))
	square, sum, part := big.NewInt(n*n), new(big.Int), new(big.Int)
	for k := int64(0); term.Sign() != 0; k++ {
		part.Quo(term, big.NewInt(2*k+1))
		if sign < 0 && k&1 == 1 {
			part.Neg(part)
		}
		sum.Add(sum, part)
		term.Quo(term, square)
	}
	return sum
}

// combined returns the sum of the series with factors.
func combined(sign int64, factors map[int64]int64) *big.Float {
	sum := new(big.Int)
	for n, factor := range factors {
		sum.Add(sum, new(big.Int).Mul(big.NewInt(factor), inverseSeries(n, sign)))
	}
	value := new(big.Float).SetPrec(constantPrecision).SetInt(sum)
	return value.SetMantExp(value, -constantPrecision)
}

var (
	pi  = sync.OnceValue(func() *big.Float { return combined(-1, map[int64]int64{5: 16, 239: -4}) })
	ln2 = sync.OnceValue(func() *big.Float { return combined(1, map[int64]int64{26: 18, 4801: -2, 8749: 8}) })
)

// nearest returns the whole number that is nearest to the quotient of x and y.
func nearest(x, y *big.Float) *big.Int {
	q := new(big.Float).SetPrec(largestAngle+guard).Quo(x, y)
	half := big.NewFloat(0.5)
	if q.Sign() < 0 {
		half.Neg(half)
	}
	n, _ := q.Add(q, half).Int(nil)
	return n
}

// exp returns e^z: the series of z/2^s after the periods are removed, squared s times. It returns false if the value
// is too large, too small or not known well.
func (a arithmetic) exp(z ball) (ball, bool) {
	if magnitude(z.re) > 25 || magnitude(z.im) > largestAngle || z.err > -8 {
		return ball{}, false
	}
	halvings := int(math.Sqrt(float64(a.precision)))
	w := arithmetic{a.precision + guard + uint(halvings) + uint(max(0, magnitude(z.re), magnitude(z.im)))}
	logarithm := w.float().Set(ln2())
	k := nearest(z.re, logarithm)
	x := ball{re: w.float().Sub(z.re, w.float().Mul(w.float().SetInt(k), logarithm)), im: new(big.Float), real: z.real}
	if !z.real {
		period := w.float().Mul(pi(), big.NewFloat(2))
		x.im = w.float().Sub(z.im, w.float().Mul(w.float().SetInt(nearest(z.im, period)), period))
	}
	x = w.scale(x, -halvings)
	sum, term := w.fromInt(1), w.fromInt(1)
	for n := int64(1); term.magnitude() > -float64(w.precision); n++ {
		term = w.multiply(term, x)
		divisor := w.float().SetInt64(n)
		term.re.Quo(term.re, divisor)
		term.im.Quo(term.im, divisor)
		sum = w.add(sum, term)
	}
	for range halvings {
		sum = w.multiply(sum, sum)
	}
	sum = w.scale(sum, int(k.Int64()))
	result := ball{re: a.float().Set(sum.re), im: a.float().Set(sum.im), real: z.real}
	m := result.magnitude()
	result.err = total(m+z.err+2, a.rounding(m))
	return result, true
}

// log returns the principal logarithm, by Newton's method on exp. It returns false if the value may be 0, or may be on
// either side of the negative axis.
func (a arithmetic) log(z ball) (ball, bool) {
	least, ok := z.atLeast()
	switch {
	case !ok:
		return ball{}, false
	case z.real && z.re.Sign() < 0:
		logarithm, ok := a.log(a.negate(z))
		return ball{re: logarithm.re, im: a.float().Set(pi()), err: total(logarithm.err, a.rounding(2))}, ok
	case !z.real && z.re.Sign() <= 0 && magnitude(z.im) <= z.err:
		return ball{}, false
	}
	e := int(z.magnitude())
	w := arithmetic{a.precision + guard}
	unit := w.scale(z, -e)
	re, _ := unit.re.Float64()
	im, _ := unit.im.Float64()
	start := cmplx.Log(complex(re, im))
	y := ball{re: big.NewFloat(real(start)), im: big.NewFloat(imag(start)), real: z.real, err: exactly}
	unit.err = exactly
	for bits := uint(45); bits < w.precision; bits *= 3 {
		step := arithmetic{min(3*bits, w.precision) + guard}
		if y, ok = step.newton(unit, y); !ok {
			return ball{}, false
		}
	}
	shift := w.float().Mul(w.float().SetInt64(int64(e)), ln2())
	result := ball{re: a.float().Add(y.re, shift), im: a.float().Set(y.im), real: z.real}
	result.err = total(z.err-least+1, a.rounding(max(1, result.magnitude(), magnitude(shift))))
	return result, true
}

// newton returns a logarithm of z that has three times as many right bits as y.
func (a arithmetic) newton(z, y ball) (ball, bool) {
	power, ok := a.exp(y)
	if !ok {
		return ball{}, false
	}
	step, ok := a.divide(a.subtract(z, power), a.add(z, power))
	if !ok {
		return ball{}, false
	}
	y = a.add(y, a.scale(step, 1))
	y.err = exactly
	return y, true
}
