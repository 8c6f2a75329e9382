// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// TestReopenOfAnOwnStateMakesOneModel throws a model away, and counts the models: the state that replaces it was saved by the
// same process, which does not check it with models of its own.
func TestReopenOfAnOwnStateMakesOneModel(t *testing.T) {
	t.Parallel()
	want := baseline(t)
	w := newFixture(t, nil)
	w.addFaults(fault.Rule{Op: "optim_step", Occurrence: 3, Do: fault.Fail, Category: "server"})
	w.startWorker("w0", behavior{})
	w.compare(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted), want)
	if made := w.models(); made != 2 {
		t.Errorf("%d models were made, want the first and the one that replaces it", made)
	}
}
