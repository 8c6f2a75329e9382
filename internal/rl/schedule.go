// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"math"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
)

// LearningRate returns the rate of a step, counted from 0, in a run of the given number of steps. The warm-up rises
// linearly from 0, which no step gets: of W warm-up steps the last has the optimizer's rate. The rest falls towards 0,
// which Linear and Cosine reach at the end of the run, after the last step.
func LearningRate(o algorithm.Optimizer, step, steps int64) float64 {
	if step < o.WarmupSteps {
		return o.LearningRate * float64(step+1) / float64(o.WarmupSteps)
	}
	if steps <= o.WarmupSteps {
		return o.LearningRate
	}
	done := min(1, float64(step-o.WarmupSteps)/float64(steps-o.WarmupSteps))
	switch o.Schedule {
	case algorithm.ScheduleLinear:
		return o.LearningRate * (1 - done)
	case algorithm.ScheduleCosine:
		return o.LearningRate * 0.5 * (1 + math.Cos(math.Pi*done))
	default:
		return o.LearningRate
	}
}
