// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transformer

import "math"

// Exp32 returns e to the power x within 2 units in the last place, and 0 below -87. It is plain arithmetic, so that it
// gives the same bits on every machine of an architecture: math.Exp computes differently if the processor has fused
// multiply-add.
func Exp32(x float32) float32 {
	if !(x > -87) {
		return nanOrZero(x)
	}
	if x > 88 {
		return float32(math.Inf(1))
	}
	const (
		log2e  = 1.44269504088896341
		high   = 0.693359375
		low    = -2.12194440e-4
		rounds = 12582912 // 1.5 * 2^23: adding it rounds to an integer
	)
	n := float32(float32(x*log2e)+rounds) - rounds
	r := x - float32(n*high)
	r -= float32(n * low)
	p := float32(1.9875691500e-4)
	p = float32(p*r) + 1.3981999507e-3
	p = float32(p*r) + 8.3334519073e-3
	p = float32(p*r) + 4.1665795894e-2
	p = float32(p*r) + 1.6666665459e-1
	p = float32(p*r) + 5.0000001201e-1
	y := float32(float32(p*r)*r) + r + 1
	return y * math.Float32frombits(uint32(int32(n)+127)<<23)
}

// nanOrZero returns NaN for NaN, which must not be treated as a small number, and else 0.
func nanOrZero(x float32) float32 {
	if x != x {
		return x
	}
	return 0
}

// softmax turns the first n scores, times scale, into probabilities and clears the rest.
func softmax(scores []float32, n int, scale float32) {
	top := scores[0]
	for _, v := range scores[:n] {
		top = max(top, v)
	}
	var sum float32
	for j, v := range scores[:n] {
		e := Exp32(float32(v-top) * scale)
		scores[j] = e
		sum += e
	}
	f := 1 / sum
	for j := range scores[:n] {
		scores[j] *= f
	}
	clear(scores[n:])
}

// LogSumExp returns the logarithm of the sum of the exponentials of a row of logits.
func LogSumExp(logits []float32) float64 {
	top := logits[0]
	for _, v := range logits {
		top = max(top, v)
	}
	sum := 0.0
	for _, v := range logits {
		sum += float64(Exp32(v - top))
	}
	return float64(top) + math.Log(sum)
}
