// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"fmt"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/state"
)

// newFixtureWithHeldSave prepares the small run with a lag. The simulator holds the reply to the save of step 2 until
// release is called.
func newFixtureWithHeldSave(t *testing.T, lag int) (w *fixture, release func()) {
	t.Helper()
	w = newFixture(t, withLag(lag))
	const id = "save-of-step-2"
	w.addFaults(fault.Rule{ID: id, Op: "save_weights", Name: "-s000002-", Do: fault.Hold, Stage: fault.Reply})
	return w, func() {
		if err := w.sim.Faults().Release(id); err != nil {
			t.Error(err)
		}
	}
}

// then calls do and continues.
func then(do func()) hook {
	return func(context.Context, func() error, string, int64) error {
		do()
		return nil
	}
}

// TestStepsAreSubmittedBesideSaves releases the reply to a save once the next step is submitted: a learner that waited
// for the reply first would wait forever.
func TestStepsAreSubmittedBesideSaves(t *testing.T) {
	for _, lag := range []int{0, 1} {
		t.Run(fmt.Sprintf("lag %d", lag), func(t *testing.T) {
			t.Parallel()
			want := baselineWithLag(t, lag, behavior{})
			w, release := newFixtureWithHeldSave(t, lag)
			w.startWorker("w0", behavior{})
			w.compare(w.waitFor(w.startLearner(1, w.at("step.submitted", 3, then(release))), contract.CauseCompleted), want)
		})
	}
}

// TestLearnerDeathBesideASave kills the learner once a step is submitted while the save before it has no reply.
func TestLearnerDeathBesideASave(t *testing.T) {
	for _, lag := range []int{0, 1} {
		for name, workerDies := range killed {
			t.Run(fmt.Sprintf("lag %d, %s", lag, name), func(t *testing.T) {
				t.Parallel()
				want := baselineWithLag(t, lag, behavior{})
				w, release := newFixtureWithHeldSave(t, lag)
				worker := w.startWorker("w0", behavior{})
				<-w.startLearner(1, w.dieAt("step.submitted", 3)).done
				if workerDies {
					worker.kill()
					w.startWorker("w1", behavior{})
				}
				release()
				w.compare(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
			})
		}
	}
}

// TestStepFailsBesideASave fails the pass of a step that was submitted beside a save: the save is completed, and the
// step is made again from it.
func TestStepFailsBesideASave(t *testing.T) {
	t.Parallel()
	want := baselineWithLag(t, 1, behavior{})
	w, release := newFixtureWithHeldSave(t, 1)
	w.addFaults(fault.Rule{Op: state.OpForwardBackward, Occurrence: 3, Do: fault.Fail})
	w.startWorker("w0", behavior{})
	var loaded []int64
	w.compare(w.waitFor(w.startLearner(1, inOrder(
		w.at("step.submitted", 3, then(release)),
		w.at("open.loaded", -1, func(_ context.Context, _ func() error, _ string, step int64) error {
			loaded = append(loaded, step)
			return nil
		}),
	)), contract.CauseCompleted), want)
	if len(loaded) != 2 || loaded[1] != 2 {
		t.Errorf("states of steps %v were loaded, want 0 and then 2", loaded)
	}
}

// TestDrainBesideASave stops the learner while the save has no reply: the commit is completed, and nothing is lost.
func TestDrainBesideASave(t *testing.T) {
	t.Parallel()
	want := baselineWithLag(t, 1, behavior{})
	w, release := newFixtureWithHeldSave(t, 1)
	w.startWorker("w0", behavior{})
	var a *attempt
	started := make(chan struct{})
	a = w.startLearner(1, w.at("save.submitted", 2, func(context.Context, func() error, string, int64) error {
		<-started
		a.drain()
		release()
		return nil
	}))
	close(started)
	if saved := w.waitFor(a, contract.CauseDrained).Progress.Step; saved != 2 {
		t.Errorf("the learner ended at step %d, want step 2", saved)
	}
	w.compare(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
}
