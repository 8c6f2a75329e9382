// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/learner"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// slotsOfAStep is the number of slots that a step of the small run has of its own.
const slotsOfAStep = 16

// withOwnSlots gives the small run a lag and two steps more than the lag, and no evaluation. With a lag, each step has
// slots of its own.
func withOwnSlots(lag int) func(*contract.RunFile) {
	return func(f *contract.RunFile) {
		withLag(lag)(f)
		f.Fixed.Algorithm.Steps, f.Evaluation = int64(lag)+2, nil
	}
}

// dropsAndRefills drops a group of each step, and in every other step also the first group that replaces it.
func dropsAndRefills(slot int64) rl.Outcome {
	step, place := slot/slotsOfAStep, slot%slotsOfAStep
	if place == 1 || place == 4 && step%2 == 0 {
		return rl.EnvironmentFault
	}
	return rl.Usable
}

func baselineWithOwnSlots(t *testing.T, lag int) outcome {
	t.Helper()
	w := newFixture(t, withOwnSlots(lag))
	w.startWorker("w0", behavior{outcome: dropsAndRefills})
	return w.outcome(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted))
}

// TestOwnSlotsAfterDeathAtEachFaultPoint kills the learner at each point with a lag of 1 and of 4, in turns alone and
// with its worker.
func TestOwnSlotsAfterDeathAtEachFaultPoint(t *testing.T) {
	for _, lag := range []int{1, 4} {
		want := baselineWithOwnSlots(t, lag)
		for i, point := range learner.FaultPoints() {
			workerDies := (i+lag)%2 == 0
			t.Run(fmt.Sprintf("lag %d, %s, worker dies %t", lag, point, workerDies), func(t *testing.T) {
				t.Parallel()
				w := newFixture(t, withOwnSlots(lag))
				worker := w.startWorker("w0", behavior{outcome: dropsAndRefills})
				step := int64(2)
				if point[:5] == "open." {
					step = -1
				}
				<-w.startLearner(1, w.dieAt(point, step)).done
				if workerDies {
					worker.kill()
					w.startWorker("w1", behavior{outcome: dropsAndRefills})
				}
				w.compare(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
				if !workerDies && worker.sampledTwice() > 0 {
					t.Errorf("the worker was not killed, and %d groups were bought twice", worker.sampledTwice())
				}
			})
		}
	}
}

// TestLaterBatchesAreSampledBesideALateGroup holds a dropped group of the first step until the batches of the next
// steps within the lag are leased: if they were leased only after this group, it would wait forever.
func TestLaterBatchesAreSampledBesideALateGroup(t *testing.T) {
	for _, lag := range []int{1, 4} {
		t.Run(fmt.Sprintf("lag %d", lag), func(t *testing.T) {
			t.Parallel()
			want := baselineWithOwnSlots(t, lag)
			w := newFixture(t, withOwnSlots(lag))
			var mu sync.Mutex
			missing := map[int64]bool{}
			for step := range int64(lag) {
				for place := range int64(w.file.Fixed.Algorithm.TasksPerStep) {
					missing[(step+1)*slotsOfAStep+place] = true
				}
			}
			leased := make(chan struct{})
			w.startWorker("w0", behavior{
				outcome: dropsAndRefills, room: 256,
				leased: func(lease exchange.Lease) {
					mu.Lock()
					defer mu.Unlock()
					if before := len(missing); before > 0 {
						if delete(missing, lease.Key.Slot); len(missing) == 0 {
							close(leased)
						}
					}
				},
				wait: func(ctx context.Context, slot int64) {
					if slot != 1 {
						return
					}
					select {
					case <-leased:
					case <-ctx.Done():
					}
				},
			})
			w.compare(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted), want)
		})
	}
}
