// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"fmt"
	"sync"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// undisturbed is the digest of the small run's final adapter, when nothing happens.
var undisturbed struct {
	once   sync.Once
	digest string
}

// baseline plays the small run undisturbed, once for all tests.
func baseline(t testing.TB) string {
	t.Helper()
	undisturbed.once.Do(func() {
		w := newWorld(t, nil)
		w.play("w0", ways{})
		undisturbed.digest = w.weights(w.end(w.learn(1, nil), contract.CauseCompleted))
		w.checkMetrics()
	})
	if undisturbed.digest == "" {
		t.Fatal("the undisturbed run failed")
	}
	return undisturbed.digest
}

// checkSame demands the undisturbed run's weights, and each step once.
func (w *world) checkSame(verdict contract.Verdict) {
	w.t.Helper()
	if got, want := w.weights(verdict), baseline(w.t); got != want {
		w.t.Errorf("final adapter is %s, undisturbed %s", got, want)
	}
	w.checkMetrics()
}

func TestTheNumberOfWorkersDoesNotMatter(t *testing.T) {
	for _, workers := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			for i := range workers {
				w.play(fmt.Sprintf("w%d", i), ways{})
			}
			w.checkSame(w.end(w.learn(1, nil), contract.CauseCompleted))
		})
	}
}
