// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// TestResumeWithTwoEnvironments trains on two weighted environments, kills the learner, and expects the weights and the
// metrics of both environments of an undisturbed run.
func TestResumeWithTwoEnvironments(t *testing.T) {
	t.Parallel()
	change := func(f *contract.RunFile) {
		a, b := arithmetic("train", 50, 4, 8), arithmetic("train", 500, 2, 12)
		a.Name, b.Name, a.Weight, b.Weight = "a", "b", 3, 1
		b.Definition.Dataset = &contract.Dataset{Dataset: settings.Dataset{Arithmetic: &settings.ArithmeticData{
			MaxOperand: 60}}}
		f.Fixed.Environments = []contract.Environment{a, b}
		ea, eb := arithmetic("test", 5, 4, 8), arithmetic("test", 7, 2, 8)
		ea.Name, eb.Name, ea.PassAt, eb.PassAt = "a", "b", []int{1, 4}, []int{1, 2}
		f.Evaluation.Environments = []contract.Environment{ea, eb}
	}
	undisturbed := newFixture(t, change)
	undisturbed.startRolloutWorker("w0")
	want := undisturbed.outcome(undisturbed.waitFor(undisturbed.startLearner(1, nil), contract.CauseCompleted))

	resumed := newFixture(t, change)
	resumed.startRolloutWorker("w0")
	resumed.startRolloutWorker("w1")
	<-resumed.startLearner(1, resumed.dieAt("save.answered", 2)).done
	resumed.compare(resumed.waitFor(resumed.startLearner(2, nil), contract.CauseCompleted), want)
	rewards := environmentMetrics(t, undisturbed)
	if last := rewards[len(rewards)-1]; last["test/a/pass@4"] == 0 || last["test/b/pass@2"] == 0 {
		t.Errorf("the last evaluation has no pass@k of both environments: %v", last)
	}
	if diff := cmp.Diff(rewards, environmentMetrics(t, resumed)); diff != "" {
		t.Errorf("the metrics of environments differ (-undisturbed +resumed):\n%s", diff)
	}
}

// environmentMetrics reads the rewards and evaluations of the run, by line; times are left out.
func environmentMetrics(t *testing.T, w *fixture) []map[string]float64 {
	t.Helper()
	lines := w.metrics()
	for _, line := range lines {
		maps.DeleteFunc(line, func(name string, _ float64) bool {
			return !strings.HasPrefix(name, "env/") && !strings.HasPrefix(name, "test/") || strings.Contains(name, "time")
		})
	}
	return lines
}
