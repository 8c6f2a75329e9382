// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"math"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
)

func TestLearningRate(t *testing.T) {
	cases := map[string]struct {
		optimizer algorithm.Optimizer
		steps     int64
		want      map[int64]float64
	}{
		"constant": {
			optimizer: algorithm.Optimizer{LearningRate: 2, Schedule: algorithm.ScheduleConstant},
			steps:     10,
			want:      map[int64]float64{0: 2, 9: 2, 30: 2},
		},
		"a warm-up rises to the peak": {
			optimizer: algorithm.Optimizer{LearningRate: 2, Schedule: algorithm.ScheduleConstant, WarmupSteps: 4},
			steps:     10,
			want:      map[int64]float64{0: 0.5, 1: 1, 3: 2, 4: 2, 9: 2},
		},
		"linear falls to zero at the end of the run": {
			optimizer: algorithm.Optimizer{LearningRate: 2, Schedule: algorithm.ScheduleLinear, WarmupSteps: 2},
			steps:     10,
			want:      map[int64]float64{0: 1, 1: 2, 2: 2, 6: 1, 9: 0.25, 10: 0, 11: 0},
		},
		"cosine falls to zero at the end of the run": {
			optimizer: algorithm.Optimizer{LearningRate: 2, Schedule: algorithm.ScheduleCosine},
			steps:     8,
			want:      map[int64]float64{0: 2, 2: 1 + math.Sqrt2/2, 4: 1, 8: 0, 9: 0},
		},
		"a warm-up as long as the run": {
			optimizer: algorithm.Optimizer{LearningRate: 2, Schedule: algorithm.ScheduleCosine, WarmupSteps: 4},
			steps:     4,
			want:      map[int64]float64{1: 1, 3: 2},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for step, want := range tc.want {
				if got := LearningRate(tc.optimizer, step, tc.steps); math.Abs(got-want) > 1e-12 {
					t.Errorf("step %d: %v, want %v", step, got, want)
				}
			}
		})
	}
}

func TestLearningRateTrainsInEveryStepAndNeverRisesAfterTheWarmup(t *testing.T) {
	for _, schedule := range []algorithm.Schedule{algorithm.ScheduleConstant, algorithm.ScheduleLinear,
		algorithm.ScheduleCosine} {
		o := algorithm.Optimizer{LearningRate: 4e-5, Schedule: schedule, WarmupSteps: 7}
		const steps = 100
		for step := range int64(steps) {
			rate := LearningRate(o, step, steps)
			if rate <= 0 || rate > o.LearningRate {
				t.Errorf("%s: step %d has %v", schedule, step, rate)
			}
			if step > o.WarmupSteps && rate > LearningRate(o, step-1, steps) {
				t.Errorf("%s: step %d rises to %v", schedule, step, rate)
			}
		}
	}
}
