// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import "math"

// Shape is how the learning rate changes after the warm-up.
type Shape string

// The shapes.
const (
	ConstantShape Shape = "Constant"
	LinearShape   Shape = "Linear"
	CosineShape   Shape = "Cosine"
)

// Schedule of the learning rate over a run.
type Schedule struct {
	// Peak is the learning rate after the warm-up.
	Peak  float64
	Shape Shape
	// WarmupSteps rise to the peak, of Steps in all.
	WarmupSteps, Steps int64
}

// LearningRate of a step, counted from 0. The warm-up rises linearly from 0, which no step gets: of W warm-up
// steps the last has the peak. The rest falls from the peak towards 0, which Linear and Cosine reach at the
// end of the run, after the last step.
func (s Schedule) LearningRate(step int64) float64 {
	if step < s.WarmupSteps {
		return s.Peak * float64(step+1) / float64(s.WarmupSteps)
	}
	if s.Steps <= s.WarmupSteps {
		return s.Peak
	}
	done := min(1, float64(step-s.WarmupSteps)/float64(s.Steps-s.WarmupSteps))
	switch s.Shape {
	case LinearShape:
		return s.Peak * (1 - done)
	case CosineShape:
		return s.Peak * 0.5 * (1 + math.Cos(math.Pi*done))
	default:
		return s.Peak
	}
}
