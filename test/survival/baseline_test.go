// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"fmt"
	"sync"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// undisturbed is the outcome of the small run without faults.
var undisturbed struct {
	once    sync.Once
	outcome outcome
}

// baseline runs the small run undisturbed, once for all tests.
func baseline(t testing.TB) outcome {
	t.Helper()
	undisturbed.once.Do(func() {
		w := newFixture(t, nil)
		w.startWorker("w0", behavior{})
		undisturbed.outcome = w.outcome(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted))
	})
	if undisturbed.outcome.adapter == "" {
		t.Fatal("the undisturbed run failed")
	}
	return undisturbed.outcome
}

// checkSame compares the run with the undisturbed one.
func (w *fixture) checkSame(verdict contract.Verdict) {
	w.t.Helper()
	w.compare(verdict, baseline(w.t))
}

func TestSameWeightsForAnyNumberOfWorkers(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, nil)
			for i := range workers {
				w.startWorker(fmt.Sprintf("w%d", i), behavior{})
			}
			w.checkSame(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted))
		})
	}
}
