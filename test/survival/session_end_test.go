// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"net/http"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// TestSessionsAreFinishedOnceTheRunIs checks that the sessions of a completed run are finished. A learner that dies
// does not finish them, since the next attempt samples in them. The checkpoints of the run stay.
func TestSessionsAreFinishedOnceTheRunIs(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	w.startWorker("w0", behavior{})
	<-w.startLearner(1, w.dieAt("save.answered", 1)).done
	if n := w.sim.Stats().Calls["finish_session"]; n != 0 {
		t.Errorf("%d sessions are finished by a learner that died, want none", n)
	}
	w.checkSame(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted))
	if n := w.sim.Stats().Calls["finish_session"]; n != 3 {
		t.Errorf("%d sessions are finished, want 3: of the models, of the samples, and of the optimizer's check", n)
	}
}

// TestSessionsThatCannotBeFinishedExpire checks that a run completes at a server that cannot finish sessions.
func TestSessionsThatCannotBeFinishedExpire(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	w.addFaults(fault.Rule{Op: "finish_session", Count: -1, Do: fault.Refuse, Status: http.StatusNotFound})
	w.startWorker("w0", behavior{})
	w.checkSame(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted))
}
