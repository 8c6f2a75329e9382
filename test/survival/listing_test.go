// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// TestCallsOfOpenings counts the calls that learners make to open models. The learner is killed 40 times before it has
// made a step, as on spot nodes, and the last learner discards three models.
func TestCallsOfOpenings(t *testing.T) {
	t.Parallel()
	const deaths = 40
	w := newFixture(t, func(f *contract.RunFile) { f.Evaluation = nil })
	w.startWorker("w0", behavior{})
	before := w.sim.Stats().Calls
	calls := func(op string) int64 { return w.sim.Stats().Calls[op] - before[op] }
	for attempt := int32(1); attempt <= deaths; attempt++ {
		before = w.sim.Stats().Calls
		<-w.startLearner(attempt, w.dieAt("open.looked", -1)).done
		if n := calls("unload_model"); n > 1 {
			t.Errorf("attempt %d unloads %d models, want 1 at most: those before are unloaded", attempt, n)
		}
		for op, most := range map[string]int64{
			"list_checkpoints": 0, "list_run_checkpoints": 2, "list_training_runs": max(0, 2-int64(attempt)),
		} {
			if n := calls(op); n > most {
				t.Errorf("attempt %d calls %s %d times, want at most %d", attempt, op, n, most)
			}
		}
	}
	w.addFaults(fault.Rule{Op: "optim_step", Do: fault.Fail, Category: "server", Count: 3})
	before = w.sim.Stats().Calls
	w.waitFor(w.startLearner(deaths+1, nil), contract.CauseCompleted)
	if n := calls("load_weights"); n < 4 {
		t.Errorf("states were loaded %d times, want 4 at least", n)
	}
	for op, most := range map[string]int64{
		"list_training_runs": 0, "list_checkpoints": 0, "unload_model": 5,
		// Two models of earlier attempts, and then, for each discarded model, at most the two newest models of this attempt.
		"list_run_checkpoints": 2 + 1 + 2 + 2,
	} {
		if n := calls(op); n > most {
			t.Errorf("attempt %d calls %s %d times, want at most %d", deaths+1, op, n, most)
		}
	}
}
