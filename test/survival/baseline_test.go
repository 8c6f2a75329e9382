// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"fmt"
	"sync"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// undisturbed is the digest of the small run's final adapter, when no fault is injected.
var undisturbed struct {
	once   sync.Once
	digest string
}

// baseline runs the small run undisturbed, once for all tests.
func baseline(t testing.TB) string {
	t.Helper()
	undisturbed.once.Do(func() {
		w := newFixture(t, nil)
		w.startWorker("w0", behavior{})
		undisturbed.digest = w.weights(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted))
		w.checkMetrics()
	})
	if undisturbed.digest == "" {
		t.Fatal("the undisturbed run failed")
	}
	return undisturbed.digest
}

// checkSame demands the undisturbed run's weights, and each step once.
func (w *fixture) checkSame(verdict contract.Verdict) {
	w.t.Helper()
	if got, want := w.weights(verdict), baseline(w.t); got != want {
		w.t.Errorf("final adapter is %s, undisturbed %s", got, want)
	}
	w.checkMetrics()
}

func TestSameWeightsForAnyNumberOfWorkers(t *testing.T) {
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
