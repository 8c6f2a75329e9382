// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transformer

import (
	"math"
	"sync"
)

// RotaryBase decides the rotations: each of the headWidth/2 pairs of dimensions rotates slower than the pair before
// it, by the eighth root of RotaryBase.
const RotaryBase = 10000

// rotary holds the cosine and sine of each position and pair of dimensions.
type rotary struct {
	cos, sin [MaxContext][headWidth / 2]float32
}

var rotaryTable = sync.OnceValue(func() *rotary {
	t := new(rotary)
	frequency, ratio := 1.0, math.Sqrt(math.Sqrt(math.Sqrt(RotaryBase)))
	for pair := range headWidth / 2 {
		for position := range MaxContext {
			angle := float64(float64(position) / frequency)
			t.cos[position][pair] = float32(math.Cos(angle))
			t.sin[position][pair] = float32(math.Sin(angle))
		}
		frequency *= ratio
	}
	return t
})

// rotate turns the queries and keys of one row of a product with the fused matrix in direction 1, and their gradients
// back in direction -1.
func (t *rotary) rotate(row []float32, position int, direction float32) {
	cos, sin := &t.cos[position], &t.sin[position]
	for at := 0; at < 2*Width; at += headWidth {
		turn(row[at:at+headWidth], cos, sin, direction)
	}
}

func turn(head []float32, cos, sin *[headWidth / 2]float32, direction float32) {
	low, high := head[:headWidth/2], head[headWidth/2:headWidth]
	for i, a := range low {
		b, c, s := high[i], cos[i], float32(direction*sin[i])
		low[i] = float32(a*c) - float32(b*s)
		high[i] = float32(a*s) + float32(b*c)
	}
}
