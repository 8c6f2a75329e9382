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

// TestGSPOGoldenVectors compares values and slopes with the result of gspo_policy_loss of SkyRL 0.4.0, whose reduction
// was a sum over tokens.
func TestGSPOGoldenVectors(t *testing.T) {
	pair := func(low, high float64) map[string]float64 {
		return map[string]float64{"clip_low_threshold": low, "clip_high_threshold": high}
	}
	for name, test := range map[string]struct {
		settings                            map[string]float64
		logprobs, sampled, advantages, mask []float32
		value                               float64
		slopes                              []float64
	}{
		"the ratio is the geometric mean": {nil, []float32{-0.3, -0.6, -0.2}, []float32{-0.2, -0.9, -0.25},
			[]float32{1, -1, 0.5}, nil, -0.5434520248, []float64{-1.08690405, 1.08690405, -0.54345202}},
		"a sequence is clipped for advantages above 0": {nil, []float32{-0.3, -0.5, -1.2}, []float32{-0.6, -0.9, -1.3},
			[]float32{1, -1, -0.5}, nil, 0.7584077581, []float64{0, 1.30560517, 0.65280259}},
		"a prompt is no part of it": {nil, []float32{-5, -0.5, -1.2}, []float32{0, -0.9, -1.3},
			[]float32{0, 1, -0.5}, []float32{0, 1, 1}, -0.5579872917, []float64{0, 0, 0.64201271}},
		"a sequence is clipped for advantages below 0": {nil, []float32{-5, -0.5, -1.2}, []float32{0, -0.1, -0.7},
			[]float32{0, 1, -0.5}, []float32{0, 1, 1}, -0.2376281516, []float64{0, -0.63762815, 0}},
		"wide bounds clip nothing": {pair(0.5, 1.5), []float32{-5, -0.5, -1.2}, []float32{0, -0.1, -0.7},
			[]float32{0, 1, -0.5}, []float32{0, 1, 1}, -0.3188140758, []float64{0, -0.63762815, 0.31881408}},
		"an empty mask has the ratio 1": {nil, []float32{-5, -0.5}, []float32{0, 0}, []float32{1, 2}, []float32{0, 0},
			-3, []float64{-1, -2}},
	} {
		t.Run(name, func(t *testing.T) {
			d := Datum{Tokens: make([]int32, len(test.logprobs)), Inputs: map[string]Tensor{
				"target_tokens": {Int: make([]int64, len(test.logprobs))}, "logprobs": {Float: test.sampled},
				"advantages": {Float: test.advantages},
			}}
			if test.mask != nil {
				d.Inputs["sequence_ratio_mask"] = Tensor{Float: test.mask}
			}
			p, err := testBase().prepare([]Datum{d}, Loss{"gspo", test.settings})
			if err != nil {
				t.Fatal(err)
			}
			p.setRatios([][]float32{test.logprobs})
			sum := 0.0
			for i, e := range p.datums[0].elements {
				value, slope := p.value(float64(test.logprobs[i]), e)
				sum += value
				if math.Abs(slope-test.slopes[i]) > 1e-6 {
					t.Errorf("slope %d is %.8f, want %.8f", i, slope, test.slopes[i])
				}
			}
			if math.Abs(sum-test.value) > 1e-6 {
				t.Errorf("value is %.10f, want %.10f", sum, test.value)
			}
		})
	}
}
