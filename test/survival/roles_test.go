// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"cmp"
	"sync"
	"sync/atomic"
	"testing"

	diff "github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// withRoles changes the small run to solvers and judges with estimators, scales and losses of their own.
func withRoles(grouping algorithm.Grouping) func(*contract.RunFile) {
	return func(f *contract.RunFile) {
		env := &f.Fixed.Environments[0]
		env.Limits = playing.Limits{Turns: 3, OnLimit: playing.LimitGrade}
		env.MinMembers = 2
		alg := f.Fixed.Algorithm
		alg.Grouping, alg.ConstantGroups = grouping, algorithm.DropConstantGroups
		alg.Advantage = algorithm.Advantage{Baseline: algorithm.BaselineGroupMean, Scale: algorithm.ScaleGroupStd}
		alg.Roles = []algorithm.Role{{
			Name:      "judge",
			Advantage: &algorithm.RoleAdvantage{Baseline: algorithm.BaselineBatchMean, Scale: algorithm.ScaleNone},
			Loss:      &algorithm.Loss{Name: algorithm.LossPPO, ClipLow: new(0.8), ClipHigh: new(1.2)},
		}}
		f.Evaluation.Environments[0].Limits = env.Limits
	}
}

// TestRoles trains two roles, by each grouping. The learner dies, and a worker dies in the middle of its groups, when a
// judge is about to be asked; digests, training data and weights equal the undisturbed run's.
func TestRoles(t *testing.T) {
	t.Parallel()
	var weights sync.Map
	for _, grouping := range []algorithm.Grouping{"", algorithm.GroupingStep, algorithm.GroupingEpisode} {
		t.Run(cmp.Or(string(grouping), "Trajectory"), func(t *testing.T) {
			t.Parallel()
			undisturbed := newFixture(t, withRoles(grouping))
			undisturbed.startRolloutWorkerOf("w0", rolesBuilder{})
			want := undisturbed.record()
			undisturbed.checkMetrics()
			if other, loaded := weights.LoadOrStore(want.Weights, grouping); loaded {
				t.Errorf("the weights equal the weights of grouping %q", other)
			}
			if steps := len(want.Rows); len(want.Passes) != 2*steps {
				t.Errorf("%d passes in %d steps, want one for each role", len(want.Passes), steps)
			}
			for _, point := range []string{"step.sampled", "step.submitted", "row.written", "save.answered"} {
				t.Run(point, func(t *testing.T) {
					t.Parallel()
					checkRolesAfterDeaths(t, grouping, point, want)
				})
			}
		})
	}
}

// checkRolesAfterDeaths repeats the wanted run with a worker that dies within groups, another worker that takes its
// place, and a learner that dies.
func checkRolesAfterDeaths(t *testing.T, grouping algorithm.Grouping, point string, want goldenRun) {
	w := newFixture(t, withRoles(grouping))
	var judges atomic.Int64
	var kill func()
	ready, died := make(chan struct{}), make(chan struct{})
	kill = w.startRolloutWorkerOf("w1", rolesBuilder{judging: func() {
		if judges.Add(1) == 3 {
			<-ready
			go func() {
				defer close(died)
				kill()
			}()
		}
	}})
	close(ready)
	first := w.startLearner(1, w.dieAt(point, 2))
	select {
	case <-died:
	case <-first.done:
		t.Fatal("the worker did not die within a group")
	}
	w.startRolloutWorkerOf("w0", rolesBuilder{})
	<-first.done
	w.startRolloutWorkerOf("w2", rolesBuilder{})
	weights := w.weights(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted))
	w.checkMetrics()
	if weights != want.Weights {
		t.Errorf("final adapter is %s, undisturbed %s", weights, want.Weights)
	}
	if d := diff.Diff(want.Rows, w.goldenRows()); d != "" {
		t.Errorf("rows (-undisturbed +got):\n%s", d)
	}
}

// TestSolverJudge trains the built-in workflow: the trajectories of each role of a task are a group.
func TestSolverJudge(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(f *contract.RunFile) {
		withRoles("")(f)
		f.Fixed.Algorithm.ConstantGroups = algorithm.KeepConstantGroups
		for _, env := range []*contract.Environment{&f.Fixed.Environments[0], &f.Evaluation.Environments[0]} {
			env.Definition.Interaction = &settings.Interaction{SolverJudge: &settings.SolverJudge{Solvers: 2}}
		}
	})
	w.startRolloutWorker("w0")
	w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
	w.checkMetrics()
	alg := w.file.Fixed.Algorithm
	members := float64(int(alg.TasksPerStep) * w.file.Fixed.Environments[0].GroupSize)
	for name, want := range map[string]float64{"solver/total_trajectories": 2 * members,
		"judge/total_trajectories": members, "total_episodes": members} {
		for step, got := range w.environmentMetric(name) {
			if got != want {
				t.Errorf("%s of step %d is %v, want %v", name, step+1, got, want)
			}
		}
	}
}
