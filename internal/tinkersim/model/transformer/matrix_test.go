// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transformer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestMul compares both products with float64 sums, for sizes on both sides of the tiles.
func TestMul(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 1))
	for _, size := range [][3]int{{1, 64, 3}, {70, 16, 64}, {200, 64, 5}, {65, 65, 17}, {130, 272, 64}, {3, 400, 16},
		{272, 64, 90}} {
		rows, cols, inner := size[0], size[1], size[2]
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			a, aT := randomMatrix(rng, rows, inner), dense(make([]float32, rows*inner), inner, rows)
			transpose(aT, a)
			b := randomMatrix(rng, inner, cols)
			start := randomMatrix(rng, rows, cols)
			plain, transposed := copyOf(start), copyOf(start)
			mul(plain, a, b, 1)
			mulT(transposed, aT, b, 1)
			for i := range rows {
				for j := range cols {
					want := float64(start.row(i)[j])
					for l := range inner {
						want += float64(a.row(i)[l]) * float64(b.row(l)[j])
					}
					if got := float64(plain.row(i)[j]); math.Abs(got-want) > 1e-4 {
						t.Fatalf("mul: element %d, %d is %v, want %v", i, j, got, want)
					}
					if plain.row(i)[j] != transposed.row(i)[j] {
						t.Fatalf("mulT: element %d, %d is %v, want %v", i, j, transposed.row(i)[j], want)
					}
				}
			}
		})
	}
}

func TestLowRank(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 1))
	const rank = 5
	for _, at := range append(AttentionBlocks()[:3], UnembedBlock()) {
		f := LowRank{At: at, A: randomMatrix(rng, at.Rows, rank).data, B: randomMatrix(rng, rank, at.Cols).data, Rank: rank,
			Scale: 0.5}
		flat := make([]float32, Size)
		f.AddTo(flat)
		slope := randomMatrix(rng, 1, Size).data
		da, db := make([]float32, len(f.A)), make([]float32, len(f.B))
		f.AddGradient(da, db, slope)

		// The value is bilinear in A and B, so each gradient times its argument is the value itself.
		value := dot(at.elements(flat), at.elements(slope))
		if got := dot(da, f.A); math.Abs(got-value) > 1e-3*math.Abs(value) {
			t.Errorf("gradient of A times A is %v, want %v", got, value)
		}
		if got := dot(db, f.B); math.Abs(got-value) > 1e-3*math.Abs(value) {
			t.Errorf("gradient of B times B is %v, want %v", got, value)
		}
		if outside := dot(flat, flat) - dot(at.elements(flat), at.elements(flat)); math.Abs(outside) > 1e-9 {
			t.Errorf("%v was added outside the block", outside)
		}
	}
}

func randomMatrix(rng *rand.Rand, rows, cols int) matrix {
	m := dense(make([]float32, rows*cols), rows, cols)
	for i := range m.data {
		m.data[i] = float32(rng.NormFloat64())
	}
	return m
}

func copyOf(m matrix) matrix {
	return dense(append([]float32{}, m.data...), m.rows, m.cols)
}

func dot(a, b []float32) float64 {
	sum := 0.0
	for i, v := range a {
		sum += float64(v) * float64(b[i])
	}
	return sum
}
