// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chattemplate

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// asInt returns the value of an integer or a boolean; nil for any other value.
func asInt(v any) *big.Int {
	switch v := v.(type) {
	case *big.Int:
		return v
	case bool:
		if v {
			return big.NewInt(1)
		}
		return new(big.Int)
	}
	return nil
}

// asFloat returns a number as a float.
func (e *evaluator) asFloat(v any) float64 {
	if f, ok := v.(float64); ok {
		return f
	}
	f, _ := new(big.Float).SetInt(asInt(v)).Float64()
	if math.IsInf(f, 0) {
		e.fail("int too large to convert to float")
	}
	return f
}

// toBig returns the integer that equals a float, or nil if there is none.
func toBig(f float64) *big.Int {
	if math.IsInf(f, 0) || math.IsNaN(f) || f != math.Trunc(f) {
		return nil
	}
	n, _ := big.NewFloat(f).Int(nil)
	return n
}

func isNumber(v any) bool {
	_, float := v.(float64)
	return float || asInt(v) != nil
}

// small returns an integer that fits in an int.
func (e *evaluator) small(v any) int {
	n := asInt(v)
	if n == nil {
		e.fail("'%s' object cannot be interpreted as an integer", typeName(v))
	}
	if !n.IsInt64() {
		e.fail("an integer is too large")
	}
	return int(n.Int64())
}

// longestInteger bounds the bits of integers that operations make.
const longestInteger = 1 << 16

func (e *evaluator) bits(n int) {
	if n > longestInteger {
		panic(&Error{Kind: Exhausted, Message: "an integer has too many digits"})
	}
	e.spend(n / 64)
}

// arithmetic computes with two numbers.
func (e *evaluator) arithmetic(op string, left, right any) any {
	a, b := asInt(left), asInt(right)
	if a != nil && b != nil {
		return e.whole(op, a, b)
	}
	return e.real(op, e.asFloat(left), e.asFloat(right))
}

func (e *evaluator) whole(op string, a, b *big.Int) any {
	e.bits(a.BitLen() + b.BitLen())
	out := new(big.Int)
	switch op {
	case "+":
		return out.Add(a, b)
	case "-":
		return out.Sub(a, b)
	case "*":
		return out.Mul(a, b)
	case "**":
		return e.power(a, b)
	}
	if b.Sign() == 0 {
		e.fail("division by zero")
	}
	if op == "/" {
		f, _ := new(big.Rat).SetFrac(a, b).Float64()
		if math.IsInf(f, 0) {
			e.fail("integer division result too large for a float")
		}
		if f == 0 && b.Sign() < 0 && a.Sign() == 0 {
			return math.Copysign(0, -1)
		}
		return f
	}
	rest := new(big.Int)
	out.QuoRem(a, b, rest)
	if rest.Sign() != 0 && rest.Sign() != b.Sign() {
		out.Sub(out, big.NewInt(1))
		rest.Add(rest, b)
	}
	if op == "//" {
		return out
	}
	return rest
}

func (e *evaluator) power(a, b *big.Int) any {
	if b.Sign() < 0 {
		return e.real("**", e.asFloat(a), e.asFloat(b))
	}
	if a.BitLen() > 1 {
		if !b.IsInt64() {
			e.bits(longestInteger + 1)
		}
		e.bits(a.BitLen() * int(min(b.Int64(), longestInteger+1)))
	} else if b.Sign() > 0 && a.Sign() != 0 {
		return new(big.Int).Exp(a, new(big.Int).Add(new(big.Int).And(b, big.NewInt(1)), big.NewInt(2)), nil)
	}
	return new(big.Int).Exp(a, b, nil)
}

func (e *evaluator) real(op string, a, b float64) any {
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "**":
		return e.realPower(a, b)
	}
	if b == 0 {
		e.fail("float division by zero")
	}
	if op == "/" {
		return a / b
	}
	rest := math.Mod(a, b)
	quotient := (a - rest) / b
	if rest != 0 && (rest < 0) != (b < 0) {
		rest += b
		quotient--
	}
	if op == "%" {
		if rest == 0 {
			return math.Copysign(0, b)
		}
		return rest
	}
	if quotient == 0 {
		return math.Copysign(0, a/b)
	}
	floor := math.Floor(quotient)
	if quotient-floor > 0.5 {
		floor++
	}
	return floor
}

func (e *evaluator) realPower(a, b float64) any {
	if a == 0 && b < 0 {
		e.fail("0.0 cannot be raised to a negative power")
	}
	out := math.Pow(a, b)
	if a < 0 && b != math.Trunc(b) && !math.IsInf(b, 0) {
		e.fail("complex numbers are not supported")
	}
	if math.IsInf(out, 0) && !math.IsInf(a, 0) && !math.IsInf(b, 0) {
		e.fail("numerical result out of range")
	}
	return out
}

// floatText prints a float as repr does.
func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	text := strconv.FormatFloat(f, 'e', -1, 64)
	exponent, _ := strconv.Atoi(text[strings.IndexByte(text, 'e')+1:])
	if exponent < -4 || exponent >= 16 {
		return text
	}
	text = strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// order compares two numbers. It returns -1, 0 or 1, or 2 if one of them is nan.
func order(left, right any) int {
	a, b := asInt(left), asInt(right)
	if a != nil && b != nil {
		return a.Cmp(b)
	}
	x, y := wide(left), wide(right)
	if x == nil || y == nil {
		return 2
	}
	return x.Cmp(y)
}

// wide returns a number without loss of precision, or nil for nan.
func wide(v any) *big.Float {
	if f, ok := v.(float64); ok {
		if math.IsNaN(f) {
			return nil
		}
		return big.NewFloat(f)
	}
	n := asInt(v)
	return new(big.Float).SetPrec(uint(max(64, n.BitLen()))).SetInt(n)
}
