// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transformer

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// matrix is a row-major view of a slice.
type matrix struct {
	data               []float32
	rows, cols, stride int
}

// dense returns a matrix without gaps over the front of data.
func dense(data []float32, rows, cols int) matrix {
	return matrix{data: data[: rows*cols : rows*cols], rows: rows, cols: cols, stride: cols}
}

func (m matrix) row(i int) []float32 { return m.data[i*m.stride : i*m.stride+m.cols] }

// columns returns the view of n columns from j.
func (m matrix) columns(j, n int) matrix {
	end := max((m.rows-1)*m.stride+j+n, j)
	return matrix{data: m.data[j:end], rows: m.rows, cols: n, stride: m.stride}
}

// slice returns the view of n rows from i.
func (m matrix) slice(i, n int) matrix {
	end := i*m.stride + max((n-1)*m.stride+m.cols, 0)
	return matrix{data: m.data[i*m.stride : end], rows: n, cols: m.cols, stride: m.stride}
}

// Tiles keep gonum on its serial path, which starts at most three 64-by-64 blocks: goroutines here would compete with
// the callers' goroutines and allocate.
const (
	tileRows = 64
	tileCols = 192
)

// mul adds a·b to c, where beta scales c first (0 or 1).
func mul(c, a, b matrix, beta float32) {
	if c.cols <= tileRows {
		for i := 0; i < c.rows; i += tileCols {
			n := min(tileCols, c.rows-i)
			gemm(blas.NoTrans, c.slice(i, n), a.slice(i, n), b, beta)
		}
		return
	}
	width := tileWidth(c.cols)
	for i := 0; i < c.rows; i += tileRows {
		n := min(tileRows, c.rows-i)
		ci, ai := c.slice(i, n), a.slice(i, n)
		for j := 0; j < c.cols; j += width {
			w := min(width, c.cols-j)
			gemm(blas.NoTrans, ci.columns(j, w), ai, b.columns(j, w), beta)
		}
	}
}

// mulT adds aᵀ·b to c, where beta scales c first (0 or 1).
func mulT(c, a, b matrix, beta float32) {
	rows := tileRows
	if c.cols <= tileRows {
		rows = tileWidth(c.rows)
	}
	width := tileWidth(c.cols)
	for i := 0; i < c.rows; i += rows {
		n := min(rows, c.rows-i)
		ci, ai := c.slice(i, n), a.columns(i, n)
		for j := 0; j < c.cols; j += width {
			w := min(width, c.cols-j)
			gemm(blas.Trans, ci.columns(j, w), ai, b.columns(j, w), beta)
		}
	}
}

// tileWidth divides n columns evenly into tiles, in multiples of four.
func tileWidth(n int) int {
	tiles := (n + tileCols - 1) / tileCols
	return ((n+tiles-1)/max(tiles, 1) + 3) / 4 * 4
}

func gemm(transA blas.Transpose, c, a, b matrix, beta float32) {
	if c.rows == 0 || c.cols == 0 {
		return
	}
	inner := a.cols
	if transA == blas.Trans {
		inner = a.rows
	}
	gonum.Implementation{}.Sgemm(transA, blas.NoTrans, c.rows, c.cols, inner, 1,
		a.data, a.stride, b.data, b.stride, beta, c.data, c.stride)
}
