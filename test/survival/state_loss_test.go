// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// TestNewestStateLost checks that the run resumes from the state before, and makes the lost step again.
func TestNewestStateLost(t *testing.T) {
	t.Parallel()
	want := baseline(t)
	for name, rule := range map[string]fault.Rule{
		"expired":      {Op: "load_weights", Name: "s000002", Do: fault.Missing, Count: -1},
		"corrupt":      {Op: "load_weights", Name: "s000002", Do: fault.Corrupt, Count: -1},
		"failing":      {Op: "load_weights", Name: "s000002", Do: fault.Fail, Category: "server", Count: 9},
		"failing once": {Op: "load_weights", Name: "s000002", Do: fault.Fail, Category: "server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, nil)
			w.startWorker("w0", behavior{})
			<-w.startLearner(1, w.dieAt("retire.before", 2)).done
			w.addFaults(rule)
			w.compare(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
		})
	}
}

// TestEveryStateLost checks that the run ends, and never begins again unnoticed.
func TestEveryStateLost(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	w.startWorker("w0", behavior{})
	<-w.startLearner(1, w.dieAt("retire.before", 2)).done
	w.addFaults(fault.Rule{Op: "load_weights", Do: fault.Missing, Count: -1})
	if v := w.waitFor(w.startLearner(2, nil), contract.CauseDataRejected); v.Reason != "NoUsableCheckpoint" {
		t.Errorf("reason is %s, want NoUsableCheckpoint", v.Reason)
	}
}

// TestInitFromDeletedAfterOpening deletes the checkpoint of initFrom after the opening state was saved.
func TestInitFromDeletedAfterOpening(t *testing.T) {
	t.Parallel()
	source := newFixture(t, nil)
	source.startWorker("w0", behavior{})
	path := source.waitFor(source.startLearner(1, nil), contract.CauseCompleted).Progress.Checkpoints[0].State

	fork := func() *fixture {
		w := *source
		w.shared, w.workers = &shared{}, nil
		w.artifacts = t.TempDir()
		w.file.ArtifactsDir = w.artifacts
		w.identify("2b3a9c2b-0000-4000-8000-000000000002")
		w.file.Fixed.InitFrom = &contract.InitFrom{Checkpoint: path, RestoreOptimizer: true}
		var err error
		if w.file.SpecDigest, err = contract.SpecDigest(w.file.Fixed); err != nil {
			t.Fatal(err)
		}
		return &w
	}
	first := fork()
	first.startWorker("f0", behavior{})
	want := first.outcome(first.waitFor(first.startLearner(1, nil), contract.CauseCompleted))

	second := fork()
	second.identify("3c3a9c2b-0000-4000-8000-000000000003")
	second.startWorker("f1", behavior{})
	<-second.startLearner(1, second.dieAt("open.saved", -1)).done
	if err := second.client.DeleteCheckpoint(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	second.compare(second.waitFor(second.startLearner(2, nil), contract.CauseCompleted), want)
}

// TestTwoRunsWithTheSameSeed checks that two runs of the same account do not affect each other.
func TestTwoRunsWithTheSameSeed(t *testing.T) {
	t.Parallel()
	a := newFixture(t, nil)
	b := *a
	b.shared, b.workers = &shared{}, nil
	b.artifacts = t.TempDir()
	b.file.ArtifactsDir = b.artifacts
	b.identify(a.file.Run.UID[:24] + "ffffffffffff") // begins with the same 8 digits
	a.startWorker("a0", behavior{})
	b.startWorker("b0", behavior{})
	<-a.startLearner(1, a.dieAt("save.answered", 2)).done
	<-b.startLearner(1, b.dieAt("save.answered", 1)).done
	second := a.startLearner(2, nil)
	ofA, ofB := a.waitFor(second, contract.CauseCompleted), b.waitFor(b.startLearner(2, nil), contract.CauseCompleted)
	want := baseline(t)
	a.compareTrained(ofA, want)
	b.compareTrained(ofB, want)
	// The bill of the simulator is for both runs.
	both := contract.Verdict{}
	both.Progress.Usage = ofA.Progress.Usage.Add(ofB.Progress.Usage)
	a.checkSpent(both)
}

// TestDeathWithOutstandingEvaluation kills a learner before an evaluation ends, and lets its sampler expire.
func TestDeathWithOutstandingEvaluation(t *testing.T) {
	t.Parallel()
	want := baseline(t)
	for name, rules := range map[string][]fault.Rule{
		"its sampler is there":    nil,
		"its sampler has expired": {{Op: "create_sampling_session", Name: "s000000.*a001", Do: fault.Missing, Count: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, nil)
			worker := w.startWorker("w0", behavior{blockEvaluation: true})
			<-w.startLearner(1, w.dieAt("claim.looked", 2)).done
			worker.kill()
			w.addFaults(rules...)
			w.startWorker("w1", behavior{})
			w.compare(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
			found, err := filepath.Glob(filepath.Join(w.artifacts, w.file.Run.UID, "evaluations", "*.json"))
			if err != nil || len(found) != 2 {
				t.Errorf("there are %d results of evaluations, want 2 (%v)", len(found), err)
			}
		})
	}
}

// TestWithoutArtifacts resumes a run from the checkpoints alone.
func TestWithoutArtifacts(t *testing.T) {
	t.Parallel()
	want := baseline(t)
	for _, point := range []string{"open.saved", "replies.clean", "save.answered", "covered.sent"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, func(f *contract.RunFile) { f.ArtifactsDir = "" })
			w.startWorker("w0", behavior{})
			step := int64(2)
			if point == "open.saved" {
				step = -1
			}
			<-w.startLearner(1, w.dieAt(point, step)).done
			if got := w.weights(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted)); got != want.adapter {
				t.Errorf("final adapter is %s, undisturbed %s", got, want.adapter)
			}
		})
	}
}

// TestArtifactStoreDownWhileLookingForClaims checks that no slot is covered until the store answers.
func TestArtifactStoreDownWhileLookingForClaims(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	w.startWorker("w0", behavior{})
	claims := filepath.Join(w.artifacts, w.file.Run.UID, "attempts")
	moved := claims + ".away"
	var away atomic.Bool
	a := w.startLearner(1, inOrder(
		w.at("save.answered", 1, then(func() { away.Store(true) })),
		w.at("save.answered", 1, rename(claims, moved)),
		func(_ context.Context, _ func() error, point string, step int64) error {
			if point == "covered.sent" && step == 1 && away.Load() {
				t.Error("step 1 was covered without a look")
			}
			return nil
		},
	))
	w.awaitOutage(a, storeOutage{problem: "no such file or directory"})
	away.Store(false)
	if err := os.Rename(moved, claims); err != nil {
		t.Fatal(err)
	}
	w.checkSame(w.waitFor(a, contract.CauseCompleted))
}

// TestBestByTrainingMetricAfterLearnerDeath chooses the best version by a metric that only rows record.
func TestBestByTrainingMetricAfterLearnerDeath(t *testing.T) {
	t.Parallel()
	run := func() *fixture {
		w := newFixture(t, func(f *contract.RunFile) {
			f.Evaluation, f.Fixed.Algorithm.Steps, f.Checkpoints.KeepBestMetric = nil, 6, "env/all/reward/total"
			f.Fixed.Algorithm.Seed = 5
		})
		w.startWorker("w0", behavior{})
		return w
	}
	w := run()
	want := w.waitFor(w.startLearner(1, nil), contract.CauseCompleted).Progress.Best
	w = run()
	<-w.startLearner(1, w.dieAt("covered.sent", 5)).done
	got := w.waitFor(w.startLearner(2, nil), contract.CauseCompleted).Progress.Best
	if want == nil || got == nil {
		t.Fatalf("the best is %v after a death, %v without", got, want)
	}
	if want.Step > 5 {
		t.Fatalf("the best is of step %d, which is after the death", want.Step)
	}
	if got.Step != want.Step || *got.Value != *want.Value {
		t.Errorf("the best is of step %d (%v) after a death, %d (%v) without", got.Step, *got.Value, want.Step, *want.Value)
	}
}
