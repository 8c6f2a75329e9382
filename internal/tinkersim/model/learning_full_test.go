// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Learning takes too long under the race detector; its parts are run with it one by one.
//go:build !race

package model

import "testing"

const (
	// learningSteps is the number of steps of the learning tests, and learningGoal the result that they must reach.
	learningSteps = 40
	learningGoal  = 0.75
)

// TestLearning tests the purpose of the simulator: with rewards the policy gets better on questions that it was not
// trained on, and with random rewards it does not.
func TestLearning(t *testing.T) {
	for name, test := range map[string]struct {
		random    bool
		steps     int
		low, high float64
	}{
		"rewards teach":               {false, learningSteps, learningGoal, 1},
		"random rewards do not teach": {true, learningSteps / 2, 0.25, 0.38},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{Rank: 8, Seed: 1, TrainAttention: true, TrainMLP: true, TrainUnembed: true}
			l := &grpoRun{groups: 32, members: 8, random: test.random, adapter: NewAdapter(testBase(), cfg)}
			before := l.passAt1(t)
			if before < 0.27 || before > 0.38 {
				t.Errorf("heldOut-out pass@1 of the base is %.3f", before)
			}
			for step := range test.steps {
				l.step(t, step)
				if (step+1)%20 == 0 {
					t.Logf("step %d: heldOut-out pass@1 %.3f, gap between sampler and trainer %.1e", step+1, l.passAt1(t), l.gap)
				}
			}
			if after := l.passAt1(t); after < test.low || after > test.high {
				t.Errorf("heldOut-out pass@1 is %.3f after %d steps, want %.2f to %.2f", after, test.steps, test.low, test.high)
			}
			if l.gap < 1e-6 || l.gap > 1e-2 {
				t.Errorf("the gap between sampler and trainer is %v", l.gap)
			}
		})
	}
}
