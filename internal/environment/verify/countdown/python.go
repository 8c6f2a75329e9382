// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package countdown

import (
	"cmp"
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// pyNumber is a number of Python: an integer, or a float.
type pyNumber struct {
	// integer is nil for a float.
	integer *big.Int
	float   float64
}

func pyInt(value *big.Int) pyNumber { return pyNumber{integer: value} }

func pyFloat(value float64) pyNumber { return pyNumber{float: value} }

// asFloat returns the value as Python's float() does, which fails for integers beyond its range.
func (n pyNumber) asFloat() (float64, error) {
	if n.integer == nil {
		return n.float, nil
	}
	value, _ := new(big.Float).SetInt(n.integer).Float64()
	if math.IsInf(value, 0) {
		return 0, errors.New("integer too large for a float")
	}
	return value, nil
}

// floatsOf returns two values as Python's float() does.
func floatsOf(a, b pyNumber) (x, y float64, err error) {
	x, failedX := a.asFloat()
	y, failedY := b.asFloat()
	return x, y, cmp.Or(failedX, failedY)
}

// near reports whether the value is the target up to rounding.
func (n pyNumber) near(target *big.Rat) bool {
	if n.integer != nil {
		difference := new(big.Rat).Sub(new(big.Rat).SetInt(n.integer), target)
		return difference.Abs(difference).Cmp(new(big.Rat).SetFloat64(closeEnough)) < 0
	}
	wanted, _ := target.Float64()
	return math.Abs(n.float-wanted) < closeEnough
}

// python calculates as Python does.
type python struct{}

func (python) number(text string) (pyNumber, error) {
	if isInteger(text) {
		value, ok := new(big.Int).SetString(text, 10)
		if !ok {
			return pyNumber{}, errSyntax
		}
		return pyInt(value), nil
	}
	if !strings.Contains(text, ".") {
		return pyNumber{}, errSyntax
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return pyNumber{}, errSyntax
	}
	return pyFloat(value), nil
}

func (python) negate(a pyNumber) pyNumber {
	if a.integer != nil {
		return pyInt(new(big.Int).Neg(a.integer))
	}
	return pyFloat(-a.float)
}

// operators returns // before /. A * is not a part of **, which the parser has read before.
func (python) operators() []string { return []string{"//", "/", "*"} }

func (python) power() string { return "**" }

func (python) apply(operator string, a, b pyNumber) (pyNumber, error) {
	if operator == "**" {
		return pyPower(a, b)
	}
	if a.integer != nil && b.integer != nil {
		return applyIntegers(operator, a.integer, b.integer)
	}
	x, y, err := floatsOf(a, b)
	if err != nil {
		return pyNumber{}, err
	}
	return applyFloats(operator, x, y)
}

func applyIntegers(operator string, a, b *big.Int) (pyNumber, error) {
	switch operator {
	case "+":
		return pyInt(new(big.Int).Add(a, b)), nil
	case "-":
		return pyInt(new(big.Int).Sub(a, b)), nil
	case "*":
		return pyInt(new(big.Int).Mul(a, b)), nil
	}
	if b.Sign() == 0 {
		return pyNumber{}, errors.New("division by zero")
	}
	if operator == "/" {
		value, _ := new(big.Rat).SetFrac(a, b).Float64()
		if math.IsInf(value, 0) {
			return pyNumber{}, errors.New("quotient too large for a float")
		}
		return pyFloat(value), nil
	}
	quotient, rest := new(big.Int).QuoRem(a, b, new(big.Int))
	if rest.Sign() != 0 && rest.Sign() != b.Sign() {
		quotient.Sub(quotient, big.NewInt(1))
	}
	return pyInt(quotient), nil
}

func applyFloats(operator string, a, b float64) (pyNumber, error) {
	switch operator {
	case "+":
		return pyFloat(a + b), nil
	case "-":
		return pyFloat(a - b), nil
	case "*":
		return pyFloat(a * b), nil
	}
	if b == 0 {
		return pyNumber{}, errors.New("division by zero")
	}
	if operator == "/" {
		return pyFloat(a / b), nil
	}
	return pyFloat(floorDivide(a, b)), nil
}

// floorDivide divides by way of the remainder, as Python does: 1.0 // 0.1 is 9.
func floorDivide(a, b float64) float64 {
	rest := math.Mod(a, b)
	quotient := (a - rest) / b
	if rest != 0 && (b < 0) != (rest < 0) {
		quotient--
	}
	floor := math.Floor(quotient)
	if quotient-floor > 0.5 {
		floor++
	}
	return floor
}

// mostBits bounds powers, which Python calculates at any length.
const mostBits = 1_000_000

// integerPower raises a to an exponent that is not negative.
func integerPower(a, b *big.Int) (pyNumber, error) {
	if a.BitLen() <= 1 { // The powers of -1, 0 and 1 depend on no more than the exponent's last bit.
		exponent := new(big.Int).And(b, big.NewInt(1))
		if b.Sign() > 0 && exponent.Sign() == 0 {
			exponent.SetInt64(2)
		}
		return pyInt(new(big.Int).Exp(a, exponent, nil)), nil
	}
	if b.BitLen() > 32 || b.Int64()*int64(a.BitLen()) > mostBits {
		return pyNumber{}, errors.New("power too large")
	}
	return pyInt(new(big.Int).Exp(a, b, nil)), nil
}

func pyPower(a, b pyNumber) (pyNumber, error) {
	if a.integer != nil && b.integer != nil && b.integer.Sign() >= 0 {
		return integerPower(a.integer, b.integer)
	}
	x, y, err := floatsOf(a, b)
	if err != nil {
		return pyNumber{}, err
	}
	value := math.Pow(x, y)
	switch {
	case x == 0 && y < 0:
		return pyNumber{}, errors.New("zero to a negative power")
	case math.IsNaN(value):
		return pyNumber{}, errors.New("the power is complex")
	case math.IsInf(value, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0):
		return pyNumber{}, errors.New("power too large for a float")
	}
	return pyFloat(value), nil
}

// evaluatePython returns the value that Python gives the expression.
func evaluatePython(text string) (pyNumber, error) {
	return evaluate(text, algebra[pyNumber](python{}))
}
