// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transformer

import (
	"math"
	"math/rand/v2"
)

// referenceLogits computes the network in the plainest way, in float64 and one sequence at a time.
func referenceLogits(flat []float64, tokens []int32) [][]float64 {
	x := make([][]float64, len(tokens))
	for i, token := range tokens {
		x[i] = append([]float64{}, flat[embedAt+int(token)*Width:][:Width]...)
	}
	for l := range Layers {
		at := layersAt + l*layerSize
		qkv := make([][]float64, len(x))
		for i := range x {
			qkv[i] = referenceProduct(referenceNorm(x[i]), flat[at+qkvAt:], 3*Width)
			referenceRotate(qkv[i], i)
		}
		for i := range x {
			referenceAdd(x[i], referenceProduct(referenceAttention(qkv, i), flat[at+outAt:], Width))
			hidden := referenceProduct(referenceNorm(x[i]), flat[at+upAt:], Hidden)
			for j, v := range hidden {
				hidden[j] = max(v, 0) * max(v, 0)
			}
			referenceAdd(x[i], referenceProduct(hidden, flat[at+downAt:], Width))
		}
	}
	for i := range x {
		x[i] = referenceProduct(referenceNorm(x[i]), flat[unembedAt:], Vocab)
	}
	return x
}

func referenceAdd(x, y []float64) {
	for j, v := range y {
		x[j] += v
	}
}

func referenceNorm(x []float64) []float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	y := make([]float64, len(x))
	for j, v := range x {
		y[j] = v / math.Sqrt(sum/float64(len(x))+NormEpsilon)
	}
	return y
}

func referenceProduct(x, w []float64, cols int) []float64 {
	y := make([]float64, cols)
	for i, v := range x {
		for j := range cols {
			y[j] += v * w[i*cols+j]
		}
	}
	return y
}

// referenceRotate turns each pair of dimensions of queries and keys as complex numbers.
func referenceRotate(row []float64, position int) {
	for head := 0; head < 2*Width; head += headWidth {
		for i := range headWidth / 2 {
			angle := float64(position) / math.Pow(RotaryBase, float64(2*i)/headWidth)
			low, high := row[head+i], row[head+i+headWidth/2]
			row[head+i] = low*math.Cos(angle) - high*math.Sin(angle)
			row[head+i+headWidth/2] = low*math.Sin(angle) + high*math.Cos(angle)
		}
	}
}

func referenceAttention(qkv [][]float64, i int) []float64 {
	out := make([]float64, Width)
	for head := 0; head < Width; head += headWidth {
		weights, total := make([]float64, i+1), 0.0
		for j := range weights {
			score := 0.0
			for d := head; d < head+headWidth; d++ {
				score += qkv[i][d] * qkv[j][Width+d]
			}
			weights[j] = math.Exp(score / math.Sqrt(headWidth))
			total += weights[j]
		}
		for j, weight := range weights {
			for d := head; d < head+headWidth; d++ {
				out[d] += weight / total * qkv[j][2*Width+d]
			}
		}
	}
	return out
}

// randomFlat draws parameters of a size that keeps activations near one.
func randomFlat(rng *rand.Rand) []float32 {
	flat := make([]float32, Size)
	for i := range flat {
		flat[i] = float32(rng.NormFloat64() * 0.15)
	}
	return flat
}

func randomSequence(rng *rand.Rand, n int) []int32 {
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = rng.Int32N(Vocab)
	}
	return tokens
}

func toFloat64(flat []float32) []float64 {
	out := make([]float64, len(flat))
	for i, v := range flat {
		out[i] = float64(v)
	}
	return out
}
