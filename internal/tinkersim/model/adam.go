// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import "math"

// AdamParams are the settings of one optimizer step; they may change from step to step.
type AdamParams struct {
	// LearningRate is the size of the step.
	LearningRate float64
	// Beta1 and Beta2 are the decay rates of the moments, at least 0 and below 1.
	Beta1, Beta2 float64
	// Eps is added to the root of the second moment.
	Eps float64
	// WeightDecay is decoupled: parameters shrink by LearningRate·WeightDecay.
	WeightDecay float64
	// GradClipNorm bounds the norm of the gradient over all parameters; 0 means no bound.
	GradClipNorm float64
}

// Validate returns a UserError if the settings are invalid.
func (p AdamParams) Validate() error {
	for _, v := range []float64{p.LearningRate, p.Eps, p.WeightDecay, p.GradClipNorm} {
		if !(v >= 0) || math.IsInf(v, 0) {
			return userErrorf("learning rate, eps, weight decay and clipping norm must be at least 0, not %g", v)
		}
	}
	for _, v := range []float64{p.Beta1, p.Beta2} {
		if !(v >= 0 && v < 1) {
			return userErrorf("the betas must be at least 0 and below 1, not %g", v)
		}
	}
	return nil
}

// OptimResult is the result of an optimizer step.
type OptimResult struct {
	// Metrics holds unclipped_grad_l2:mean, the norm of the gradient before clipping.
	Metrics map[string]float64
}

// OptimStep makes one AdamW step with the accumulated gradient and clears it. Without a gradient it
// is a step with gradient zero: moments decay, the step counts, and the remaining momentum moves the
// parameters. A gradient that is not finite is not detected. Errors are UserErrors and change nothing.
func (a *Adapter) OptimStep(p AdamParams) (OptimResult, error) {
	if err := p.Validate(); err != nil {
		return OptimResult{}, err
	}
	norm := l2(a.gradient)
	a.steps++
	p.update(a.adamState, norm, a.steps)
	clear(a.gradient)
	a.merge()
	return OptimResult{Metrics: map[string]float64{"unclipped_grad_l2:mean": norm}}, nil
}

// adamState is the state that a step reads and changes.
type adamState struct {
	params        []float32 // all matrices A and B, in the order of an adapter's parts
	gradient      []float32 // accumulated since the last optimizer step
	first, second []float32 // Adam's moments
}

// update makes step number steps, counted from 1, with a gradient of the given norm.
func (p AdamParams) update(s adamState, norm float64, steps uint64) {
	scale := 1.0
	if p.GradClipNorm > 0 && norm > p.GradClipNorm {
		scale = p.GradClipNorm / norm
	}
	fix1, fix2 := 1-power(p.Beta1, steps), 1-power(p.Beta2, steps)
	for i, g := range s.gradient {
		g := float64(g) * scale
		s.first[i] = float32(p.Beta1*float64(s.first[i]) + (1-p.Beta1)*g)
		s.second[i] = float32(p.Beta2*float64(s.second[i]) + (1-p.Beta2)*g*g)
		move := float64(s.first[i]) / fix1 / (math.Sqrt(float64(s.second[i])/fix2) + p.Eps)
		if math.IsNaN(move) && s.first[i] == 0 {
			move = 0 // no gradient yet and no eps
		}
		s.params[i] = float32(float64(s.params[i])*(1-p.LearningRate*p.WeightDecay) - p.LearningRate*move)
	}
}

// power returns x to the n by squaring, which gives the same bits on every machine.
func power(x float64, n uint64) float64 {
	result := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			result *= x
		}
		x *= x
	}
	return result
}

func l2(v []float32) float64 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}
