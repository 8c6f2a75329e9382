// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// TestWorkerDeath kills a worker in the middle of groups, which another worker takes over.
func TestWorkerDeath(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	started := make(chan struct{}, 64)
	first := w.startWorker("w0", behavior{delay: func(slot int64) time.Duration {
		if slot == 5 {
			started <- struct{}{}
			return time.Minute
		}
		return 0
	}})
	a := w.startLearner(1, nil)
	<-started
	first.kill()
	w.startWorker("w1", behavior{})
	w.checkSame(w.waitFor(a, contract.CauseCompleted))
}

// TestLateWorkerAfterLearnerDeath restarts the learner while one worker is in the middle of a slot and another says
// Hello late: the groups of both are used, in either order, and no group is sampled twice.
func TestLateWorkerAfterLearnerDeath(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	w.barrier = time.Minute
	release := make(chan struct{})
	w.startWorker("w0", behavior{room: 8})
	w.startWorker("w1", behavior{room: 8, delay: func(slot int64) time.Duration {
		if slot == 6 || slot == 5 {
			<-release
		}
		return 0
	}})
	first := w.startLearner(1, w.dieAt("save.answered", 1))
	<-first.done
	second := w.startLearner(2, nil)
	time.AfterFunc(150*time.Millisecond, func() { close(release) })
	w.checkSame(w.waitFor(second, contract.CauseCompleted))
	w.checkSampledOnce()
}

// TestNoWorkersUntilSessionExpires waits without workers until the rollout session has expired at the server.
func TestNoWorkersUntilSessionExpires(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	worker := w.startWorker("w0", behavior{})
	f := stopAt("covered.sent", 1)
	first := w.startAndStop(1, f)
	worker.kill()
	first.cancel()
	w.advance(2 * time.Minute)
	w.startWorker("w1", behavior{})
	w.checkSame(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted))
}

// everyThirdIsTombstone makes a tombstone of every third slot.
func everyThirdIsTombstone(slot int64) rl.Outcome {
	if slot%3 == 1 {
		return rl.EnvironmentFault
	}
	return rl.Usable
}

// TestTombstones compares two runs in which the same slots are dropped. In the second run, the worker that stores
// tombstones dies together with the learner.
func TestTombstones(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]algorithm.DroppedGroupPolicy{
		"refill": algorithm.RefillDroppedGroups, "shrink": algorithm.ShrinkDroppedGroups,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := func(f *contract.RunFile) { f.Fixed.Algorithm.OnDroppedGroup = policy }
			w := newFixture(t, change)
			w.startWorker("w0", behavior{outcome: everyThirdIsTombstone})
			want := w.outcome(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted))

			w = newFixture(t, change)
			worker := w.startWorker("w0", behavior{outcome: everyThirdIsTombstone})
			<-w.startLearner(1, w.dieAt("row.written", 2)).done
			worker.kill()
			w.startWorker("w1", behavior{outcome: everyThirdIsTombstone})
			w.startWorker("w2", behavior{outcome: everyThirdIsTombstone})
			<-w.startLearner(2, w.dieAt("sampler.announced", 3)).done
			w.compare(w.waitFor(w.startLearner(3, nil), contract.CauseCompleted), want)
		})
	}
}

// TestBatchWithoutUsableGroups commits the second of three steps without training, even if the learner dies.
func TestBatchWithoutUsableGroups(t *testing.T) {
	t.Parallel()
	run := func() *fixture {
		w := newFixture(t, func(f *contract.RunFile) { f.Fixed.Algorithm.OnDroppedGroup = algorithm.ShrinkDroppedGroups })
		w.startWorker("w0", behavior{outcome: func(slot int64) rl.Outcome {
			if slot >= 4 && slot < 8 {
				return rl.BelowFloor
			}
			return rl.Usable
		}})
		return w
	}
	w := run()
	want := w.outcome(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted))
	if trained := w.sim.Stats().Operations["optim_step"]; trained != 2 {
		t.Errorf("%d optimizer steps were made, want one for each of the 2 batches with usable groups", trained)
	}
	w = run()
	<-w.startLearner(1, w.dieAt("save.submitted", 2)).done
	w.compare(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
}

// TestRejectedTokens refuses two groups at the endpoint: they become tombstones, at the learner and at the worker, and
// the run has the weights of a run in which they always were tombstones.
func TestRejectedTokens(t *testing.T) {
	t.Parallel()
	rejected := func(slot int64) rl.Outcome {
		if slot == 5 || slot == 6 {
			return rl.InvalidTokens
		}
		return rl.Usable
	}
	w := newFixture(t, nil)
	w.startWorker("w0", behavior{outcome: rejected})
	want := w.outcome(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted))

	w = newFixture(t, nil)
	w.startWorker("w0", behavior{change: func(g rl.Group) rl.Group {
		if g.Key.Kind == rl.Train && rejected(g.Key.Slot) != rl.Usable {
			g.Members[1].Trajectories[0].Segments[0].Tokens[0] = 1 << 20 // no token of the vocabulary
		}
		return g
	}})
	<-w.startLearner(1, w.dieAt("sampler.announced", 2)).done
	w.compareWeights(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
}

// TestWorkerWithRoomForOneGroup samples one group after the other.
func TestWorkerWithRoomForOneGroup(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(f *contract.RunFile) { f.Concurrency = 2 })
	w.startWorker("w0", behavior{room: 4})
	w.checkSame(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted))
}

// TestSilentWorkerDeath kills a worker with leases whose connection does not end.
func TestSilentWorkerDeath(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	hung := make(chan struct{}, 64)
	w.startWorker("w0", behavior{room: 8, delay: func(int64) time.Duration {
		hung <- struct{}{}
		return time.Hour
	}})
	a := w.startLearner(1, nil)
	<-hung
	// The first worker is alive and renews its leases, so that it keeps them; then it is killed.
	w.startWorker("w1", behavior{})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	<-ctx.Done()
	w.worker("w0").kill()
	w.checkSame(w.waitFor(a, contract.CauseCompleted))
}
