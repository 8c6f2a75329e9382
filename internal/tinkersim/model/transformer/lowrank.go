// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transformer

// LowRank is a change of a block by the product of two thin matrices, Scale·A·B.
type LowRank struct {
	// At is the block that is changed.
	At Block
	// A is At.Rows by Rank and B is Rank by At.Cols, both row-major.
	A, B []float32
	// Rank is the inner dimension.
	Rank int
	// Scale multiplies the product.
	Scale float32
}

// AddTo adds the change to a flat vector of parameters.
func (f LowRank) AddTo(flat []float32) {
	a := matrix{data: scaled(f.A, f.Scale), rows: f.At.Rows, cols: f.Rank, stride: f.Rank}
	mul(f.At.of(flat), a, f.matrixB(), 1)
}

// AddGradient adds the gradients of A and B to da and db, given the gradient of all parameters.
func (f LowRank) AddGradient(da, db, flatGradient []float32) {
	g := f.At.of(flatGradient)
	transposedB := dense(make([]float32, f.At.Cols*f.Rank), f.At.Cols, f.Rank)
	transpose(transposedB, f.matrixB())
	product := dense(make([]float32, len(da)), f.At.Rows, f.Rank)
	mul(product, g, transposedB, 0)
	addTo(da, scaled(product.data, f.Scale))

	product = dense(make([]float32, len(db)), f.Rank, f.At.Cols)
	mulT(product, dense(f.A, f.At.Rows, f.Rank), g, 0)
	addTo(db, scaled(product.data, f.Scale))
}

func (f LowRank) matrixB() matrix { return dense(f.B, f.Rank, f.At.Cols) }

// of returns the block as a matrix.
func (b Block) of(flat []float32) matrix {
	end := b.Offset + (b.Rows-1)*b.Stride + b.Cols
	return matrix{data: flat[b.Offset:end], rows: b.Rows, cols: b.Cols, stride: b.Stride}
}

func scaled(s []float32, f float32) []float32 {
	out := make([]float32, len(s))
	for i, v := range s {
		out[i] = v * f
	}
	return out
}
