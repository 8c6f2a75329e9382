// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"fmt"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// TestResumeWithDistantStates kills the learner, and in half of the cases the worker, of a run that saves a state only
// at every third step: the weights equal the weights of an undisturbed run at each lag.
func TestResumeWithDistantStates(t *testing.T) {
	t.Parallel()
	for _, lag := range []int{0, 1, 2} {
		change := func(f *contract.RunFile) {
			withLag(lag)(f)
			f.Fixed.Algorithm.Steps = 7
			f.Checkpoints.RollingEverySteps, f.Checkpoints.EverySteps = 3, 0
		}
		run := func() *fixture { return newFixture(t, change) }
		w := run()
		w.startWorker("w0", behavior{})
		want := w.outcome(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted))
		for _, workerDies := range []bool{false, true} {
			for _, at := range []struct {
				point string
				step  int64
			}{{"replies.clean", 5}, {"sampler.announced", 5}, {"save.answered", 6}, {"covered.sent", 3}, {"step.submitted", 4}} {
				w := run()
				p := w.startWorker("w0", behavior{})
				<-w.startLearner(1, w.dieAt(at.point, at.step)).done
				if workerDies {
					p.kill()
					w.startWorker("w1", behavior{})
				}
				a := w.startLearner(2, nil)
				<-a.done
				name := fmt.Sprintf("lag %d %s@%d workerDies %v", lag, at.point, at.step, workerDies)
				if a.verdict.Cause != contract.CauseCompleted {
					t.Errorf("%s: %s %s", name, a.verdict.Cause, a.verdict.Message)
					continue
				}
				w.compare(a.verdict, want)
				if !workerDies && p.sampledTwice() > 0 {
					t.Errorf("%s: %d bought twice", name, p.sampledTwice())
				}
			}
		}
	}
}
