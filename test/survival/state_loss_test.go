// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// TestTheNewestStateIsLost falls back to the one before, and pays for its step again.
func TestTheNewestStateIsLost(t *testing.T) {
	want := baseline(t)
	for name, rule := range map[string]fault.Rule{
		"expired":      {Op: "load_weights", Name: "s000002", Do: fault.Missing, Count: -1},
		"corrupt":      {Op: "load_weights", Name: "s000002", Do: fault.Corrupt, Count: -1},
		"failing":      {Op: "load_weights", Name: "s000002", Do: fault.Fail, Category: "server", Count: 9},
		"failing once": {Op: "load_weights", Name: "s000002", Do: fault.Fail, Category: "server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			w.play("w0", ways{})
			<-w.learn(1, w.dieAt("retire.before", 2)).done
			w.script(rule)
			if got := w.weights(w.end(w.learn(2, nil), contract.CauseCompleted)); got != want {
				t.Errorf("final adapter is %s, undisturbed %s", got, want)
			}
			w.checkMetrics()
		})
	}
}

// TestEveryStateIsLost ends the run: it never begins again in silence.
func TestEveryStateIsLost(t *testing.T) {
	w := newWorld(t, nil)
	w.play("w0", ways{})
	<-w.learn(1, w.dieAt("retire.before", 2)).done
	w.script(fault.Rule{Op: "load_weights", Do: fault.Missing, Count: -1})
	if v := w.end(w.learn(2, nil), contract.CauseDataRejected); v.Reason != "NoUsableCheckpoint" {
		t.Errorf("reason is %s, want NoUsableCheckpoint", v.Reason)
	}
}

// TestInitFromVanishes after the opening state was saved.
func TestInitFromVanishes(t *testing.T) {
	source := newWorld(t, nil)
	source.play("w0", ways{})
	path := source.end(source.learn(1, nil), contract.CauseCompleted).Progress.Checkpoints[0].State

	fork := func() *world {
		w := *source
		w.street, w.players = &street{}, nil
		w.artifacts = t.TempDir()
		w.file.ArtifactsDir = w.artifacts
		w.file.Run.UID = "2b3a9c2b-0000-4000-8000-000000000002"
		w.file.Fixed.InitFrom = &contract.InitFrom{Checkpoint: path, RestoreOptimizer: true}
		var err error
		if w.file.SpecDigest, err = contract.SpecDigest(w.file.Fixed); err != nil {
			t.Fatal(err)
		}
		w.link = source.link
		return &w
	}
	first := fork()
	first.play("f0", ways{})
	want := first.weights(first.end(first.learn(1, nil), contract.CauseCompleted))
	first.checkMetrics()

	second := fork()
	second.file.Run.UID = "3c3a9c2b-0000-4000-8000-000000000003"
	second.play("f1", ways{})
	<-second.learn(1, second.dieAt("open.saved", -1)).done
	if err := second.client.DeleteCheckpoint(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if got := second.weights(second.end(second.learn(2, nil), contract.CauseCompleted)); got != want {
		t.Errorf("final adapter is %s, want %s as of the fork whose source stayed", got, want)
	}
	second.checkMetrics()
}

// TestTwoRunsOfOneSeed share an account and do not disturb one another.
func TestTwoRunsOfOneSeed(t *testing.T) {
	a := newWorld(t, nil)
	b := *a
	b.street, b.players = &street{}, nil
	b.artifacts = t.TempDir()
	b.file.ArtifactsDir = b.artifacts
	b.file.Run.UID = "1f3a9c2b-0000-4000-8000-0000000000ff" // begins with the same 8 digits
	a.play("a0", ways{})
	b.play("b0", ways{})
	<-a.learn(1, a.dieAt("save.answered", 2)).done
	<-b.learn(1, b.dieAt("save.answered", 1)).done
	second := a.learn(2, nil)
	a.checkSame(a.end(second, contract.CauseCompleted))
	b.checkSame(b.end(b.learn(2, nil), contract.CauseCompleted))
}

// TestAnEvaluationIsOutstanding at a death, and its sampler expires.
func TestAnEvaluationIsOutstanding(t *testing.T) {
	want := baseline(t)
	for name, rules := range map[string][]fault.Rule{
		"its sampler is there":    nil,
		"its sampler has expired": {{Op: "create_sampling_session", Name: "s000000.*a001", Do: fault.Missing, Count: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			worker := w.play("w0", ways{stuckEvaluation: true})
			<-w.learn(1, w.dieAt("claim.looked", 2)).done
			worker.kill()
			w.script(rules...)
			w.play("w1", ways{})
			if got := w.weights(w.end(w.learn(2, nil), contract.CauseCompleted)); got != want {
				t.Errorf("final adapter is %s, undisturbed %s", got, want)
			}
			w.checkMetrics()
			found, err := filepath.Glob(filepath.Join(w.artifacts, w.file.Run.UID, "evaluations", "*.json"))
			if err != nil || len(found) != 2 {
				t.Errorf("there are %d results of evaluations, want 2 (%v)", len(found), err)
			}
		})
	}
}

// TestTheStoreIsDown trains on and commits later.
func TestTheStoreIsDown(t *testing.T) {
	w := newWorld(t, nil)
	w.play("w0", ways{})
	rows := filepath.Join(w.artifacts, w.file.Run.UID, "rows")
	moved := rows + ".away"
	a := w.learn(1, func(_ context.Context, _ func() error, point string, step int64) error {
		switch {
		case point == "step.submitted" && step == 1:
			return os.Rename(rows, moved)
		case point == "step.submitted" && step == 3:
			return os.Rename(moved, rows)
		}
		return nil
	})
	w.checkSame(w.end(a, contract.CauseCompleted))
}

// TestWithoutArtifacts survives by the checkpoints alone.
func TestWithoutArtifacts(t *testing.T) {
	want := baseline(t)
	for _, point := range []string{"open.saved", "replies.clean", "save.answered", "covered.sent"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(f *contract.RunFile) { f.ArtifactsDir = "" })
			w.play("w0", ways{})
			step := int64(2)
			if point == "open.saved" {
				step = -1
			}
			<-w.learn(1, w.dieAt(point, step)).done
			if got := w.weights(w.end(w.learn(2, nil), contract.CauseCompleted)); got != want {
				t.Errorf("final adapter is %s, undisturbed %s", got, want)
			}
		})
	}
}

// TestTheStoreIsDownAtTheLook covers nothing until it answers.
func TestTheStoreIsDownAtTheLook(t *testing.T) {
	w := newWorld(t, nil)
	w.play("w0", ways{})
	claims := filepath.Join(w.artifacts, w.file.Run.UID, "attempts")
	moved := claims + ".away"
	a := w.learn(1, func(_ context.Context, _ func() error, point string, step int64) error {
		switch {
		case point == "save.answered" && step == 1:
			return os.Rename(claims, moved)
		case point == "covered.sent" && step == 1:
			t.Error("step 1 was covered without a look")
		case point == "step.submitted" && step == 2:
			return os.Rename(moved, claims)
		}
		return nil
	})
	w.checkSame(w.end(a, contract.CauseCompleted))
}
