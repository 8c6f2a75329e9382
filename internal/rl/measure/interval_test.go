// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// TestWilsonIntervalsThatArePublished compares with table I of R. G. Newcombe, Two-sided confidence intervals for the
// single proportion, Statistics in Medicine 17, 1998, method 3.
func TestWilsonIntervalsThatArePublished(t *testing.T) {
	for _, tc := range []struct {
		passed, n int
		low, high float64
	}{{81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 29, 0.0061, 0.1718}} {
		rates := make([]float64, tc.n)
		for i := range tc.passed {
			rates[i] = 1
		}
		for _, trials := range []int{tc.n, 64 * tc.n} { // Rates of 0 and 1 are one trial each.
			got := shareInterval(rates, trials)
			if tc.passed > 0 || trials == tc.n {
				if math.Abs(got.low-tc.low) > 5e-5 || math.Abs(got.high-tc.high) > 5e-5 {
					t.Errorf("%d of %d: %.4f to %.4f, want %.4f to %.4f", tc.passed, tc.n, got.low, got.high, tc.low, tc.high)
				}
			}
		}
	}
}

// TestIntervalsCoverTheTruth draws evaluations of tasks of different difficulty, and counts how often the intervals
// contain the mean over all tasks.
func TestIntervalsCoverTheTruth(t *testing.T) {
	const rounds = 3000
	for name, tc := range map[string]struct {
		tasks, samples, k int
		spread            float64
		low, high         float64
	}{
		"one sample a task":         {100, 1, 1, 0.5, 0.93, 0.97},
		"tasks that differ":         {50, 8, 1, 1, 0.93, 0.97},
		"tasks that are much alike": {50, 8, 1, 0.1, 0.93, 0.975},
		"pass@4 of 8":               {50, 8, 4, 1, 0.92, 0.98},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			difficulty := func() float64 { return 0.5 + tc.spread*(random.Float64()-0.5) }
			truth := 0.0
			for range 200000 {
				truth += 1 - math.Pow(1-difficulty(), float64(tc.k))
			}
			truth /= 200000
			covered, coveredMean := 0, 0
			for range rounds {
				rates, means := make([]float64, tc.tasks), make([]average, tc.tasks)
				for i := range rates {
					passed, p := 0, difficulty()
					for range tc.samples {
						if random.Float64() < p {
							passed++
						}
					}
					rates[i], _ = PassAtK(tc.samples, passed, tc.k)
					means[i] = average{sum: rates[i] * float64(tc.samples), count: tc.samples}
				}
				if got := shareInterval(rates, tc.tasks*(tc.samples/tc.k)); got.low <= truth && truth <= got.high {
					covered++
				}
				if got, ok := meanInterval(means, true); ok && got.low <= truth && truth <= got.high {
					coveredMean++
				}
			}
			for kind, n := range map[string]int{"share": covered, "mean": coveredMean} {
				if share := float64(n) / rounds; share < tc.low || share > tc.high {
					t.Errorf("%.3f of the intervals of the %s have the truth, want %.3f to %.3f", share, kind, tc.low, tc.high)
				}
			}
		})
	}
}

func TestIntervalsAtTheEdge(t *testing.T) {
	all := shareInterval([]float64{1, 1, 1, 1}, 256)
	if all.high != 1 || math.Abs(all.low-0.5101) > 1e-4 {
		t.Errorf("4 tasks that always pass have %.4f to %.4f, want Wilson's 0.5101 to 1, whatever their samples", all.low,
			all.high)
	}
	one := shareInterval([]float64{0.5}, 64)
	if one.high-one.low < 0.8 {
		t.Errorf("one task has %.4f to %.4f, which says too much of other tasks", one.low, one.high)
	}
	for name, tasks := range map[string][]average{"no task": nil, "one task": {{1, 2}},
		"equal tasks": {{1, 2}, {2, 4}, {0.5, 1}}} {
		if got, ok := meanInterval(tasks, false); ok {
			t.Errorf("%s: interval %v, want none", name, got)
		}
	}
	// The rewards 1, 1 of one task and 0, 0, 0 of another: residuals 1.2 and -1.2 of the mean 0.4.
	got, ok := meanInterval([]average{{2, 2}, {0, 3}}, false)
	want := normal95 * math.Sqrt(2*(1.2*1.2+1.2*1.2)) / 5
	if !ok || math.Abs(got.high-got.low-2*want) > 1e-12 || math.Abs(got.low+got.high-0.8) > 1e-12 {
		t.Errorf("interval %v, want 0.4 give or take %v", got, want)
	}
}

func TestIntervalsOfSharesStayWithinZeroAndOne(t *testing.T) {
	for shares, want := range map[bool]float64{true: 0, false: 0.25 - normal95*0.25} {
		if got, ok := meanInterval([]average{{1, 1}, {0, 1}, {0, 1}, {0, 1}}, shares); !ok || math.Abs(got.low-want) > 1e-9 {
			t.Errorf("shares %v: the low end is %v, want %v", shares, got.low, want)
		}
	}
}

func TestEstimates(t *testing.T) {
	groups := []rl.Group{solverJudge([3]float64{1, 0, 1}, [3]float64{1, 1, 0}),
		solverJudge([3]float64{0, 0, 0}, [3]float64{0, 1, 1})}
	for i := range groups {
		groups[i].Environment = "debate"
		for j := range groups[i].Members {
			m := &groups[i].Members[j]
			judge := m.Trajectories[2].Reward
			m.StopReason = "stop"
			m.Metrics = map[string]float64{"solver_acc": (m.Reward - judge) / 2, "judge_acc": judge, MetricCorrect: judge}
		}
	}
	other := rewarded(1, 1)
	other.Environment = "sums"
	metrics := EvaluationMetrics(append(groups, other), map[string]Samples{"debate": {2, []int{2}}, "sums": {2, nil}})
	var names []string
	bounded := map[string]bool{}
	for _, e := range Estimates(metrics, "debate") {
		names = append(names, e.Name)
		bounded[e.Name] = e.Low != nil && *e.Low < e.Value && e.Value < *e.High
	}
	want := []string{"pass@1", "pass@2", "solved@2", "reward/total", "judge/reward/total", "solver/reward/total",
		"judge_acc", "solver_acc"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("estimates (-want +got):\n%s", diff)
	}
	for _, name := range []string{"pass@1", "reward/total", "solver/reward/total", "solver_acc"} {
		if !bounded[name] {
			t.Errorf("%s has no interval around it", name)
		}
	}
	if got := Estimates(metrics, "sums"); !slices.ContainsFunc(got,
		func(e contract.Estimate) bool { return e.Name == "reward/total" && e.Low == nil }) {
		t.Errorf("estimates %v: want a reward without an interval, since there is one task", got)
	}
}
