// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// changeSettings changes the learning rate of a run between two attempts, as the manager does for a changed spec.
func (w *fixture) changeSettings(last int32, rate float64) {
	w.t.Helper()
	former := w.file.SpecDigest
	algorithm := *w.file.Fixed.Algorithm
	algorithm.Optimizer.LearningRate = rate
	w.file.Fixed.Algorithm = &algorithm
	fixed := w.file.Fixed
	fixed.BaseURL = ""
	digest, err := contract.SpecDigest(fixed)
	if err != nil {
		w.t.Fatal(err)
	}
	w.file.SpecDigest = digest
	w.file.Former = w.file.Former.Append(contract.FormerSettings{LastAttempt: last, SpecDigest: former})
	w.file.Former[len(w.file.Former)-1].Changed = []string{"algorithm"}
}

// TestChangeSettingsBeforeFirstStep kills learners before their first step, changes the settings that decide the
// weights, and gets the weights of a run that had the new settings from its beginning.
func TestChangeSettingsBeforeFirstStep(t *testing.T) {
	t.Parallel()
	changed := newFixture(t, func(f *contract.RunFile) { f.Fixed.Algorithm.Optimizer.LearningRate = 2e-3 })
	changed.startWorker("w0", behavior{})
	want := changed.waitFor(changed.startLearner(1, nil), contract.CauseCompleted)

	for _, point := range []string{"open.saved", "step.sampled", "row.written"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, nil)
			worker := w.startWorker("w0", behavior{})
			first := w.startLearner(1, w.dieAt(point, -1))
			<-first.done
			worker.kill() // The manager replaces the workers, whose run file has the former settings.
			w.changeSettings(1, 2e-3)
			w.startWorker("w1", behavior{})
			got := w.waitFor(w.startLearner(2, nil), contract.CauseCompleted)
			if w.weights(got) != changed.weights(want) || got.Progress.Lineage != want.Progress.Lineage {
				t.Errorf("the run has lineage %s and weights %s, one with the new settings from its beginning %s and %s",
					got.Progress.Lineage, w.weights(got), want.Progress.Lineage, changed.weights(want))
			}
		})
	}
}

// TestChangeSettingsAfterUnseenStep kills a learner once its first step is committed. The manager does not know this
// when the settings are changed: the next attempt trains nothing and reports why, and an attempt with the former
// settings continues.
func TestChangeSettingsAfterUnseenStep(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	worker := w.startWorker("w0", behavior{})
	first := w.startLearner(1, w.dieAt("save.answered", 1))
	<-first.done
	worker.kill()

	former, rate := w.file.SpecDigest, w.file.Fixed.Algorithm.Optimizer.LearningRate
	w.changeSettings(1, 2e-3)
	w.startWorker("w1", behavior{}).kill()
	verdict := w.waitFor(w.startLearner(2, nil), contract.CauseConfigRejected)
	if verdict.Reason != problem.SettingsDiffer || !strings.Contains(verdict.Message,
		"Attempt 1 committed step 1 before a change of spec.algorithm") {
		t.Errorf("the verdict says %s: %s", verdict.Reason, verdict.Message)
	}
	if verdict.Progress.Step != 0 || len(verdict.Progress.Checkpoints) > 0 {
		t.Errorf("the attempt reports step %d and checkpoints %v, as if the settings of the spec had made them",
			verdict.Progress.Step, verdict.Progress.Checkpoints)
	}

	w.changeSettings(2, rate)
	if w.file.SpecDigest != former {
		t.Fatalf("the former settings have another digest: got %v, want %v", w.file.SpecDigest, former)
	}
	w.startWorker("w2", behavior{})
	w.checkSame(w.waitFor(w.startLearner(3, nil), contract.CauseCompleted))
}
