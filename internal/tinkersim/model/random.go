// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import "math"

// uniform returns a number of at least 0 and below 1 that is a function of its arguments. Numbers are
// drawn by counter, not in sequence, so none of them depends on how many were drawn before.
func uniform(seed uint64, index, position int) float64 {
	x := Mix(seed + 0x9e3779b97f4a7c15)
	x = Mix(x ^ uint64(index)*0xd1342543de82ef95 + 0x9e3779b97f4a7c15)
	x = Mix(x ^ uint64(position)*0xd1342543de82ef95 + 0x9e3779b97f4a7c15)
	return float64(x>>11) / (1 << 53)
}

// addNoise adds normally distributed noise to the logits of one position.
func addNoise(logits []float32, r SampleRequest, position int) {
	if r.Noise == 0 {
		return
	}
	for token := range logits {
		counter := position*Vocab + token
		radius := math.Sqrt(-2 * math.Log(1-uniform(r.NoiseKey, r.Index, 2*counter)))
		angle := 2 * math.Pi * uniform(r.NoiseKey, r.Index, 2*counter+1)
		logits[token] += float32(r.Noise * radius * math.Cos(angle))
	}
}

// Mix is the finaliser of SplitMix64, a bijection in which every bit of x affects about half the bits of the result.
func Mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
