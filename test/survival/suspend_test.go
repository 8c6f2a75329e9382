// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// TestSuspendAtEachPoint asks a learner to drain, takes its workers away, and resumes with others.
func TestSuspendAtEachPoint(t *testing.T) {
	t.Parallel()
	want := baseline(t)
	for _, point := range learner.FaultPoints() {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, nil)
			worker := w.startWorker("w0", behavior{})
			var first *attempt
			ready := make(chan struct{})
			first = w.startLearner(1, func(_ context.Context, _ func() error, at string, step int64) error {
				if at == point && (step == 2 || step < 1) {
					<-ready
					first.drain()
				}
				return nil
			})
			close(ready)
			verdict := w.waitFor(first, contract.CauseDrained)
			worker.kill()
			for _, c := range verdict.Progress.Checkpoints {
				if c.Step == verdict.Progress.Step && c.ExpirationTime != "" {
					t.Errorf("the suspended state of step %d expires at %s", c.Step, c.ExpirationTime)
				}
			}
			w.startWorker("w1", behavior{})
			w.compare(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
		})
	}
}

// TestSuspendBetweenStates saves the steps since the last state, and resumes from there.
func TestSuspendBetweenStates(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(f *contract.RunFile) { f.Checkpoints.RollingEverySteps = 10 })
	worker := w.startWorker("w0", behavior{})
	var first *attempt
	ready := make(chan struct{})
	first = w.startLearner(1, func(_ context.Context, _ func() error, at string, step int64) error {
		if at == "replies.clean" && step == 2 {
			<-ready
			first.drain()
		}
		return nil
	})
	close(ready)
	if verdict := w.waitFor(first, contract.CauseDrained); verdict.Progress.Step != 2 {
		t.Errorf("drained at step %d, want 2", verdict.Progress.Step)
	}
	worker.kill()
	w.startWorker("w1", behavior{})
	w.checkSame(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted))
}

// TestDrainByHeartbeat drains a learner without workers by a heartbeat.
func TestDrainByHeartbeat(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	a := w.startLearner(1, nil)
	reply, err := w.heartbeat(a, 1, contract.DesiredRun)
	if err != nil {
		t.Fatal(err)
	}
	if reply.Attempt != 1 || reply.RunUID != w.file.Run.UID {
		t.Errorf("heartbeat is answered by %s, attempt %d", reply.RunUID, reply.Attempt)
	}
	if _, err := w.heartbeat(a, 1, contract.DesiredDrain); err != nil {
		t.Fatal(err)
	}
	if got := w.waitFor(a, contract.CauseDrained).Reason; got != problem.StopRequested {
		t.Errorf("the reason is %q, want %q", got, problem.StopRequested)
	}
	w.startWorker("w0", behavior{})
	w.checkSame(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted))
}
