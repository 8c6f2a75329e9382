// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math"
	"testing"
)

// TestLossGoldenVectors compares values and slopes with the vectors of the API's reference.
func TestLossGoldenVectors(t *testing.T) {
	first := vectors{
		logprobs:   []float64{-0.3, -0.6, -0.2},
		sampled:    []float64{-0.2, -0.9, -0.25},
		advantages: []float64{1, -1, 0.5},
		weights:    []float64{0, 1, 0.5},
	}
	clipping := vectors{
		logprobs:   []float64{-0.3, -0.5, -1.2},
		sampled:    []float64{-0.6, -0.3, -0.7},
		advantages: []float64{1, 1, -1},
		weights:    []float64{1, 1, 1},
	}
	narrow := map[string]float64{"clip_low_threshold": 0.8, "clip_high_threshold": 1.2}
	for name, test := range map[string]struct {
		loss   Loss
		in     vectors
		value  float64
		slopes []float64
	}{
		"cross_entropy weighs tokens": {Loss{"cross_entropy", nil}, first, 0.7, []float64{0, -1, -0.5}},
		"importance_sampling weighs by ratio": {Loss{"importance_sampling", nil}, first, -0.0806141586,
			[]float64{-0.90483742, 1.34985881, -0.52563555}},
		"ppo does not clip what pulls back": {Loss{"ppo", narrow}, first, -0.0806141586,
			[]float64{-0.90483742, 1.34985881, -0.52563555}},
		"ppo clips at 0.8 and 1.2 by default": {Loss{"ppo", nil}, clipping, -1.21873075, []float64{0, -0.81873075, 0}},
		"cispo clips at 0 and 4 by default": {Loss{"cispo", nil}, first, -0.4333369495,
			[]float64{-0.90483742, 1.34985881, -0.52563555}},
		"cispo keeps the slope of what it clips": {Loss{"cispo", narrow}, first, -0.3434216650,
			[]float64{-0.90483742, 1.2, -0.52563555}},
		"dro has beta 0.05 by default": {Loss{"dro", nil}, first, -0.1974375, []float64{-1.005, 1.015, -0.4975}},
		"dro without beta is plain": {Loss{"dro", map[string]float64{"beta": 0}}, first, 0.2*0.5 + 0.3 - 0.6,
			[]float64{-1, 1, -0.5}},
	} {
		t.Run(name, func(t *testing.T) {
			value, slopes := test.in.compute(t, test.loss)
			if math.Abs(value-test.value) > 1e-6 {
				t.Errorf("value is %.10f, want %.10f", value, test.value)
			}
			for i, want := range test.slopes {
				if math.Abs(slopes[i]-want) > 1e-6 {
					t.Errorf("slope %d is %.8f, want %.8f", i, slopes[i], want)
				}
			}
		})
	}
}

type vectors struct {
	logprobs, sampled, advantages, weights []float64
}

func (v vectors) compute(t *testing.T, loss Loss) (sum float64, slopes []float64) {
	t.Helper()
	kind := lossKinds[loss.Name]
	settings, err := kind.settings(loss)
	if err != nil {
		t.Fatal(err)
	}
	for i, logprob := range v.logprobs {
		e := settings
		e.sampled, e.advantage, e.weight = v.sampled[i], v.advantages[i], v.weights[i]
		value, slope := kind.value(logprob, e)
		sum, slopes = sum+value, append(slopes, slope)
	}
	return sum, slopes
}
