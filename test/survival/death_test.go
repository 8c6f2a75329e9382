// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"fmt"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner"
)

// whoDies along with the learner.
var whoDies = map[string]bool{"learner alone": false, "learner and worker": true}

func TestDeathAtEachPoint(t *testing.T) {
	want := baseline(t)
	for _, point := range learner.FaultPoints() {
		for name, workerDies := range whoDies {
			t.Run(fmt.Sprintf("%s, %s", point, name), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, nil)
				worker := w.play("w0", ways{})
				step := int64(2)
				if point[:5] == "open." {
					step = -1
				}
				<-w.learn(1, w.dieAt(point, step)).done
				if workerDies {
					worker.kill()
					w.play("w1", ways{})
				}
				// The second dies in the same place, should it come there; the third must not.
				second := w.learn(2, dieIfAt(point, step))
				<-second.done
				verdict := second.verdict
				if verdict.Cause != contract.CauseCompleted {
					verdict = w.end(w.learn(3, nil), contract.CauseCompleted)
				}
				if got := w.weights(verdict); got != want {
					t.Errorf("final adapter is %s, undisturbed %s", got, want)
				}
				w.checkMetrics()
				if !workerDies && worker.twice() > 0 {
					t.Errorf("the worker lived and %d groups were bought twice", worker.twice())
				}
			})
		}
	}
}
