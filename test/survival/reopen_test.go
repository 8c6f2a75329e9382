// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// runWithReopen trains a run that throws one model away, and returns its fixture and verdict. The state that replaces
// the model was saved by the same process.
func runWithReopen(t testing.TB) (*fixture, contract.Verdict) {
	t.Helper()
	w := newFixture(t, nil)
	w.addFaults(fault.Rule{Op: "optim_step", Occurrence: 3, Do: fault.Fail, Category: "server"})
	w.startWorker("w0", behavior{})
	return w, w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
}

// TestReopenOfAnOwnStateMakesOneModel checks that one model replaces a failed one: a learner makes no further models
// to check a state that it has saved itself.
func TestReopenOfAnOwnStateMakesOneModel(t *testing.T) {
	t.Parallel()
	want := baseline(t)
	w, verdict := runWithReopen(t)
	w.compare(verdict, want)
	if made := w.models(); made != 2 {
		t.Errorf("%d models were made, want the first and the one that replaces it", made)
	}
}

// BenchmarkReopen prints how many models a learner makes besides the first model and the model that replaces it.
func BenchmarkReopen(b *testing.B) {
	var extra int64
	for b.Loop() {
		w, _ := runWithReopen(b)
		extra = w.models() - 2
	}
	b.ReportMetric(float64(extra), "extra-models")
	b.ReportMetric(0, "goal")
	b.ReportMetric(0, "ns/op")
}
