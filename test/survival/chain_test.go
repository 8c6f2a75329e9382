// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner"
)

// beginNext replaces the fixture's run by another run, which begins with a checkpoint.
func (w *fixture) beginNext(checkpoint string, change func(*contract.RunFile)) {
	w.t.Helper()
	n := fixtures.Add(1)
	w.identify(fmt.Sprintf("%08x-0000-4000-8000-%012x", 0x1f3a9c2b+n, n))
	w.file.Fixed, w.file.Evaluation = small(), nil
	w.file.Fixed.InitFrom = &contract.InitFrom{Checkpoint: "tinker://first/weights/last"}
	change(&w.file)
	digest, err := contract.SpecDigest(w.file.Fixed) // Paths and addresses differ between two fixtures.
	if err != nil {
		w.t.Fatal(err)
	}
	w.file.SpecDigest, w.file.Fixed.BaseURL = digest, w.url
	if checkpoint != "" {
		w.file.Fixed.InitFrom.Checkpoint = checkpoint
	}
}

// chain trains on rows and then by reinforcement learning, with a death in each stage, and returns the weights.
func chain(t *testing.T, point string) string {
	t.Helper()
	w := newSupervised(t)
	run := func(step int64) contract.Verdict {
		if point == "" {
			return w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
		}
		if point[:5] == "open." {
			step = -1
		}
		<-w.startLearner(1, w.dieAt(point, step)).done
		return w.waitFor(w.startLearner(2, nil), contract.CauseCompleted)
	}
	first := run(2)
	w.beginNext(first.Progress.Checkpoints[0].State, func(*contract.RunFile) {})
	w.startWorker("w0", behavior{})
	last := run(2)
	if last.Progress.Step != 3 {
		t.Errorf("the second run ended at step %d, want 3", last.Progress.Step)
	}
	return w.weights(last)
}

// TestChainOfRunsSurvivesDeathsInEachStage begins a run of reinforcement learning with the weights of a supervised one.
func TestChainOfRunsSurvivesDeathsInEachStage(t *testing.T) {
	t.Parallel()
	want := chain(t, "")
	for _, point := range learner.FaultPoints() {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			if got := chain(t, point); got != want {
				t.Errorf("the adapter is %s, and undisturbed %s", got, want)
			}
		})
	}
}

// TestForkContinuesData checks that a fork begins at the slot at which the first run ended, even if the fork's first
// learner dies.
func TestForkContinuesData(t *testing.T) {
	t.Parallel()
	slots := func(w *fixture) (list []int64) {
		for _, row := range w.rows() {
			for _, s := range row.Manifest {
				list = append(list, s.Slot)
			}
		}
		return list
	}
	for _, point := range []string{"", "open.saved", "save.submitted"} {
		t.Run("death at "+point, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, func(f *contract.RunFile) { f.Evaluation = nil })
			worker := w.startWorker("w0", behavior{})
			verdict := w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
			before, cursor := slots(w), verdict.Progress.Cursor
			worker.kill()
			w.beginNext(verdict.Progress.Checkpoints[0].State, func(f *contract.RunFile) { f.Fixed.InitFrom.Cursor = cursor })
			w.startWorker("w1", behavior{})
			if point != "" {
				<-w.startLearner(1, w.dieAt(point, -1)).done
			}
			w.waitFor(w.startLearner(2, nil), contract.CauseCompleted)
			after := slots(w)
			if slices.Max(before) >= cursor || slices.Min(after) != cursor {
				t.Errorf("the run took the slots %v up to %d, and its fork %v", before, cursor, after)
			}
		})
	}
}

// distilledChain trains on rows, then by a teacher alone, and then by reinforcement learning, with a death of the
// learner in each stage, and returns the weights of the last two.
func distilledChain(t *testing.T, point string) (distilled, last string) {
	t.Helper()
	w := newSupervised(t)
	stage := func() contract.Verdict {
		if point == "" {
			return w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
		}
		step := int64(2)
		if point[:5] == "open." {
			step = -1
		}
		<-w.startLearner(1, w.dieAt(point, step)).done
		return w.waitFor(w.startLearner(2, nil), contract.CauseCompleted)
	}
	first := stage()
	w.beginNext(first.Progress.Checkpoints[0].State, withTeacher(instructedTeacher))
	kill := w.startRolloutWorker("w0")
	second := stage()
	if second.Progress.Usage.TeacherTokens == 0 {
		t.Error("the second run has not asked its teacher")
	}
	kill()
	w.beginNext(second.Progress.Checkpoints[0].State, func(*contract.RunFile) {})
	w.startWorker("w1", behavior{})
	return w.weights(second), w.weights(stage())
}

// TestChainWithDistillationSurvivesDeathsInEachStage goes from rows to a teacher and to rewards.
func TestChainWithDistillationSurvivesDeathsInEachStage(t *testing.T) {
	t.Parallel()
	wantDistilled, want := distilledChain(t, "")
	for _, point := range []string{"open.saved", "step.submitted", "row.written", "save.answered"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			distilled, got := distilledChain(t, point)
			if distilled != wantDistilled || got != want {
				t.Errorf("the adapters are %s and %s, and undisturbed %s and %s", distilled, got, wantDistilled, want)
			}
		})
	}
}
