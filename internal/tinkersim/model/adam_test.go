// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"crypto/sha256"
	"errors"
	"math"
	"testing"
)

func TestAdamFirstStep(t *testing.T) {
	s := adamState{params: []float32{1, 1, 1}, gradient: []float32{0.1, -2, 0}, first: make([]float32, 3),
		second: make([]float32, 3)}
	p := AdamParams{LearningRate: 1e-4, Beta1: .9, Beta2: .95, Eps: 1e-12, WeightDecay: .01}
	p.update(s, l2(s.gradient), 1)
	for i, want := range []float64{0.999899, 1.000099, 0.999999} {
		if math.Abs(float64(s.params[i])-want) > 1e-7 {
			t.Errorf("parameter %d is %.8f, want %.8f", i, s.params[i], want)
		}
	}
}

// TestAdamFormulas computes five steps in float64, with other settings at each.
func TestAdamFormulas(t *testing.T) {
	s := adamState{params: []float32{0.5, -1}, first: make([]float32, 2), second: make([]float32, 2)}
	var first, second [2]float64
	want := [2]float64{0.5, -1}
	for step := 1; step <= 5; step++ {
		n := float64(step)
		p := AdamParams{LearningRate: 0.01 * n, Beta1: .8, Beta2: .9, Eps: 1e-3 * n, WeightDecay: 0.1 * n, GradClipNorm: 2}
		gradient := [2]float64{math.Sin(n), 3 * math.Cos(n)}
		s.gradient = []float32{float32(gradient[0]), float32(gradient[1])}
		norm := math.Hypot(gradient[0], gradient[1])
		p.update(s, norm, uint64(step))
		for i, g := range gradient {
			g *= min(1, 2/norm)
			first[i] = .8*first[i] + .2*g
			second[i] = .9*second[i] + .1*g*g
			root := math.Sqrt(second[i] / (1 - math.Pow(.9, n)))
			want[i] = want[i]*(1-p.LearningRate*p.WeightDecay) - p.LearningRate*first[i]/(1-math.Pow(.8, n))/(root+p.Eps)
		}
	}
	for i := range want {
		if math.Abs(float64(s.params[i])-want[i]) > 1e-6 {
			t.Errorf("parameter %d is %v, want %v", i, s.params[i], want[i])
		}
	}
}

func TestOptimStepWithoutGradient(t *testing.T) {
	p := AdamParams{LearningRate: 1e-3, Beta1: .9, Beta2: .95}
	a := NewAdapter(testBase(), testConfig)
	fresh := a.MarshalState(false)
	mustStep(t, a, p)
	if got := a.MarshalState(false); string(got) != string(fresh) {
		t.Errorf("a step without gradient moved a fresh adapter: sha256 %x, want %x",
			sha256.Sum256(got), sha256.Sum256(fresh))
	}
	mustRun(t, a, testBatch(3), Loss{Name: "cross_entropy"})
	if norm := mustStep(t, a, p).Metrics["unclipped_grad_l2:mean"]; !(norm > 0) {
		t.Errorf("the gradient's norm is %v", norm)
	}
	moved := a.MarshalState(false)
	if norm := mustStep(t, a, p).Metrics["unclipped_grad_l2:mean"]; norm != 0 {
		t.Errorf("the gradient was not cleared: its norm is %v", norm)
	}
	if got := a.MarshalState(false); string(got) == string(moved) {
		t.Errorf("momentum did not move the parameters: sha256 %x before and after", sha256.Sum256(got))
	}
	if a.Steps() != 3 {
		t.Errorf("%d steps were counted", a.Steps())
	}
}

func TestOptimStepInvalidParams(t *testing.T) {
	good := AdamParams{LearningRate: 1e-3, Beta1: .9, Beta2: .95, Eps: 1e-8}
	for name, change := range map[string]func(*AdamParams){
		"negative rate":      func(p *AdamParams) { p.LearningRate = -1 },
		"rate of NaN":        func(p *AdamParams) { p.LearningRate = math.NaN() },
		"beta1 of 1":         func(p *AdamParams) { p.Beta1 = 1 },
		"negative beta2":     func(p *AdamParams) { p.Beta2 = -.1 },
		"endless eps":        func(p *AdamParams) { p.Eps = math.Inf(1) },
		"negative decay":     func(p *AdamParams) { p.WeightDecay = -1 },
		"negative clip norm": func(p *AdamParams) { p.GradClipNorm = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			a := NewAdapter(testBase(), testConfig)
			before := a.MarshalState(true)
			p := good
			change(&p)
			_, err := a.OptimStep(p)
			var user *UserError
			if !errors.As(err, &user) {
				t.Errorf("error is %v, want one of the user", err)
			}
			if got := a.MarshalState(true); string(got) != string(before) {
				t.Errorf("the adapter has sha256 %x, want %x as before", sha256.Sum256(got), sha256.Sum256(before))
			}
		})
	}
}
