// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"math"
	"math/bits"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

func TestPassAtKIsTheShareOfSubsetsThatPass(t *testing.T) {
	for n := 1; n <= 8; n++ {
		for passed := 0; passed <= n; passed++ {
			for k := 1; k <= n; k++ {
				subsets, passing := 0, 0
				for set := range uint(1) << n {
					if bits.OnesCount(set) != k {
						continue
					}
					subsets++
					if set&(1<<passed-1) != 0 {
						passing++
					}
				}
				got, ok := PassAtK(n, passed, k)
				if want := float64(passing) / float64(subsets); !ok || math.Abs(got-want) > 1e-12 {
					t.Errorf("PassAtK(%d, %d, %d) = %v, %v, want %v", n, passed, k, got, ok, want)
				}
			}
		}
	}
}

func TestPassAtKIsUndefinedForTooFewSamples(t *testing.T) {
	for _, c := range [][3]int{{3, 1, 4}, {0, 0, 1}, {3, 1, 0}, {3, 4, 1}, {3, -1, 1}} {
		if v, ok := PassAtK(c[0], c[1], c[2]); ok {
			t.Errorf("PassAtK(%v) = %v", c, v)
		}
	}
}

func TestPassed(t *testing.T) {
	cases := map[string]struct {
		member rl.Member
		want   bool
	}{
		"correct":                      {rl.Member{Metrics: map[string]float64{MetricCorrect: 1}}, true},
		"half correct":                 {rl.Member{Metrics: map[string]float64{MetricCorrect: 0.5}}, true},
		"less than half, and a reward": {rl.Member{Reward: 1, Metrics: map[string]float64{MetricCorrect: 0.49}}, false},
		"a reward alone":               {rl.Member{Reward: 0.01}, true},
		"no reward":                    {rl.Member{}, false},
	}
	for name, tc := range cases {
		if got := Passed(tc.member); got != tc.want {
			t.Errorf("%s: Passed is %v, want %v", name, got, tc.want)
		}
	}
}

func TestEvaluationMetrics(t *testing.T) {
	game := func(rewards ...float64) rl.Group {
		g := rewarded(rewards...)
		g.Environment = "game"
		return g
	}
	groups := []rl.Group{
		{Environment: "sums", Members: []rl.Member{answered(0, 1, right), answered(1, 0, wrong)}},
		{Environment: "sums", Members: []rl.Member{answered(0, 0.5, wrong), answered(1, 0.5, silent)}},
		{Environment: "sums", Members: []rl.Member{answered(0, 1, right)}},
		{Environment: "sums", Outcome: rl.JudgeFault},
		game(0, 0.1, 0, 0), game(0, 0, 0, 0),
	}
	got := EvaluationMetrics(groups, map[string]Samples{"sums": {2, []int{1, 2}}, "game": {4, []int{4, 2}}})
	want := map[string]float64{
		"test/sums/pass@1": (0.5 + 0 + 1) / 3, "test/game/pass@1": 0.125, "test/pass@1": (0.5 + 0 + 1 + 0.25 + 0) / 5,
		"test/sums/pass@2": 0.5, "test/game/pass@2": 0.25, "test/pass@2": (1 + 0 + 0.5 + 0) / 4,
		"test/game/pass@4": 0.5,
		"test/tasks":       6, "test/tasks_left_out": 1, "test/sums/tasks": 4, "test/sums/tasks_left_out": 1,
		"test/game/tasks":    2,
		"test/sums/solved@2": 2.0 / 3, "test/game/solved@4": 0.5,
		// Wilson's interval for 1 of 2 tasks.
		"test/game/solved@4/ci95_low": 0.0945312, "test/game/solved@4/ci95_high": 0.9054688,
		"test/env/sums/reward/total": 3.0 / 5, "test/env/all/total_episodes": 13,
	}
	for name, v := range want {
		if math.Abs(got[name]-v) > 1e-7 {
			t.Errorf("%s = %v, want %v", name, got[name], v)
		}
	}
	for _, name := range []string{"test/pass@4", "test/sums/pass@4", "test/solved@4", "test/solved@2"} {
		if v, ok := got[name]; ok {
			t.Errorf("%s = %v, though not every environment has it", name, v)
		}
	}
}
