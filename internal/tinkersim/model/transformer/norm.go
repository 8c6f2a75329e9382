// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transformer

import "math"

// NormEpsilon is added to the mean square of a row.
const NormEpsilon = 1e-6

// normalize writes the root-mean-square norm of each row of x to y and its factor to inverse.
func normalize(y, x matrix, inverse []float32) {
	for i := range x.rows {
		from, to := x.row(i), y.row(i)
		var sum float32
		for _, v := range from {
			sum += float32(v * v)
		}
		f := float32(1 / math.Sqrt(float64(sum)/Width+NormEpsilon))
		inverse[i] = f
		for j, v := range from {
			to[j] = v * f
		}
	}
}

// normalizeBack adds to dx the gradient of normalize, given its results and the gradient of y.
func normalizeBack(dx, dy, y matrix, inverse []float32) {
	for i := range y.rows {
		g, out, to := dy.row(i), y.row(i), dx.row(i)
		var dot float32
		for j, v := range g {
			dot += float32(v * out[j])
		}
		mean, f := dot/Width, inverse[i]
		for j, v := range g {
			to[j] += f * float32(v-float32(mean*out[j]))
		}
	}
}

// squareReLU writes relu(h) over h and its square to a.
func squareReLU(a, h matrix) {
	for i, v := range h.data {
		v = max(v, 0)
		h.data[i] = v
		a.data[i] = v * v
	}
}

// squareReLUBack turns the gradient of the square into the gradient of h, given relu(h).
func squareReLUBack(d, h matrix) {
	for i, v := range h.data {
		d.data[i] *= 2 * v
	}
}
