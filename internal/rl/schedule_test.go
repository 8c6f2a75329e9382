// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"math"
	"testing"
)

func TestLearningRate(t *testing.T) {
	cases := map[string]struct {
		schedule Schedule
		want     map[int64]float64
	}{
		"constant": {
			schedule: Schedule{Peak: 2, Shape: ConstantShape, Steps: 10},
			want:     map[int64]float64{0: 2, 9: 2, 30: 2},
		},
		"a warm-up rises to the peak": {
			schedule: Schedule{Peak: 2, Shape: ConstantShape, WarmupSteps: 4, Steps: 10},
			want:     map[int64]float64{0: 0.5, 1: 1, 3: 2, 4: 2, 9: 2},
		},
		"linear falls to zero at the end of the run": {
			schedule: Schedule{Peak: 2, Shape: LinearShape, WarmupSteps: 2, Steps: 10},
			want:     map[int64]float64{0: 1, 1: 2, 2: 2, 6: 1, 9: 0.25, 10: 0, 11: 0},
		},
		"cosine falls to zero at the end of the run": {
			schedule: Schedule{Peak: 2, Shape: CosineShape, Steps: 8},
			want:     map[int64]float64{0: 2, 2: 1 + math.Sqrt2/2, 4: 1, 8: 0, 9: 0},
		},
		"a warm-up as long as the run": {
			schedule: Schedule{Peak: 2, Shape: CosineShape, WarmupSteps: 4, Steps: 4},
			want:     map[int64]float64{1: 1, 3: 2},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for step, want := range tc.want {
				if got := tc.schedule.LearningRate(step); math.Abs(got-want) > 1e-12 {
					t.Errorf("step %d: %v, want %v", step, got, want)
				}
			}
		})
	}
}

func TestLearningRateTrainsInEveryStepAndNeverRisesAfterTheWarmup(t *testing.T) {
	for _, shape := range []Shape{ConstantShape, LinearShape, CosineShape} {
		s := Schedule{Peak: 4e-5, Shape: shape, WarmupSteps: 7, Steps: 100}
		for step := range s.Steps {
			rate := s.LearningRate(step)
			if rate <= 0 || rate > s.Peak {
				t.Errorf("%s: step %d has %v", shape, step, rate)
			}
			if step > s.WarmupSteps && rate > s.LearningRate(step-1) {
				t.Errorf("%s: step %d rises to %v", shape, step, rate)
			}
		}
	}
}
