// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// TestDivergedPolicyEndsTheRun has a version that gives nothing but invalid tokens. The run ends at the state before,
// rather than committing the remaining steps without training.
func TestDivergedPolicyEndsTheRun(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(f *contract.RunFile) { f.Fixed.Algorithm.Steps, f.Evaluation = 6, nil })
	w.startWorker("w0", behavior{outcome: func(slot int64) rl.Outcome {
		if slot >= 8 {
			return rl.InvalidTokens
		}
		return rl.Usable
	}})
	verdict := w.waitFor(w.startLearner(1, nil), contract.CauseDataRejected)
	if verdict.Reason != "Diverged" || verdict.Progress.Step != 2 {
		t.Errorf("the run ended at step %d with %s: %s; want step 2 and Diverged", verdict.Progress.Step, verdict.Reason, verdict.Message)
	}
	if rows := w.rows(); len(rows) != 2 {
		t.Errorf("there are %d rows, want 2: none of a step without training", len(rows))
	}
	if made := w.sim.Stats().Calls["create_model"]; made != 1 {
		t.Errorf("%d models were made, want 1", made)
	}
}
