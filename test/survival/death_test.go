// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"fmt"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner"
)

// killed lists which processes die together, and whether the worker is one of them.
var killed = map[string]bool{"learner alone": false, "learner and worker": true}

func TestResumeAfterDeathAtEachFaultPoint(t *testing.T) {
	t.Parallel()
	want := baseline(t)
	for _, point := range learner.FaultPoints() {
		for name, workerDies := range killed {
			t.Run(fmt.Sprintf("%s, %s", point, name), func(t *testing.T) {
				t.Parallel()
				w := newFixture(t, withTensorBoard)
				worker := w.startWorker("w0", behavior{})
				step := int64(2)
				if point[:5] == "open." {
					step = -1
				}
				<-w.startLearner(1, w.dieAt(point, step)).done
				if workerDies {
					worker.kill()
					w.startWorker("w1", behavior{})
				}
				// The second learner dies at the same point if it passes it; the third must not die.
				second := w.startLearner(2, dieIfAt(point, step))
				<-second.done
				verdict := second.verdict
				if verdict.Cause != contract.CauseCompleted {
					verdict = w.waitFor(w.startLearner(3, nil), contract.CauseCompleted)
				}
				w.compare(verdict, want)
				w.checkTensorBoard()
				w.checkEpisodes()
				if !workerDies && worker.sampledTwice() > 0 {
					t.Errorf("the worker was not killed, and %d groups were bought twice", worker.sampledTwice())
				}
			})
		}
	}
}
