// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"math"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

func TestLearningRate(t *testing.T) {
	cases := map[string]struct {
		optimizer contract.Optimizer
		steps     int64
		want      map[int64]float64
	}{
		"constant": {
			optimizer: contract.Optimizer{LearningRate: 2, Schedule: contract.ScheduleConstant},
			steps:     10,
			want:      map[int64]float64{0: 2, 9: 2, 30: 2},
		},
		"a warm-up rises to the peak": {
			optimizer: contract.Optimizer{LearningRate: 2, Schedule: contract.ScheduleConstant, WarmupSteps: 4},
			steps:     10,
			want:      map[int64]float64{0: 0.5, 1: 1, 3: 2, 4: 2, 9: 2},
		},
		"linear falls to zero at the end of the run": {
			optimizer: contract.Optimizer{LearningRate: 2, Schedule: contract.ScheduleLinear, WarmupSteps: 2},
			steps:     10,
			want:      map[int64]float64{0: 1, 1: 2, 2: 2, 6: 1, 9: 0.25, 10: 0, 11: 0},
		},
		"cosine falls to zero at the end of the run": {
			optimizer: contract.Optimizer{LearningRate: 2, Schedule: contract.ScheduleCosine},
			steps:     8,
			want:      map[int64]float64{0: 2, 2: 1 + math.Sqrt2/2, 4: 1, 8: 0, 9: 0},
		},
		"a warm-up as long as the run": {
			optimizer: contract.Optimizer{LearningRate: 2, Schedule: contract.ScheduleCosine, WarmupSteps: 4},
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
	for _, schedule := range []contract.Schedule{contract.ScheduleConstant, contract.ScheduleLinear,
		contract.ScheduleCosine} {
		o := contract.Optimizer{LearningRate: 4e-5, Schedule: schedule, WarmupSteps: 7}
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
