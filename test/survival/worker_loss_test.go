// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// TestAWorkerDies in the middle of groups; another one takes over.
func TestAWorkerDies(t *testing.T) {
	w := newWorld(t, nil)
	started := make(chan struct{}, 64)
	victim := w.play("w0", ways{slow: func(slot int64) time.Duration {
		if slot == 5 {
			started <- struct{}{}
			return time.Minute
		}
		return 0
	}})
	a := w.learn(1, nil)
	<-started
	victim.kill()
	w.play("w1", ways{})
	w.checkSame(w.end(a, contract.CauseCompleted))
}

// TestOneWorkerIsLate has the learner restart while one worker is in the middle of a slot and another says
// Hello late: what they have is used, whoever was first.
func TestOneWorkerIsLate(t *testing.T) {
	w := newWorld(t, nil)
	release := make(chan struct{})
	w.play("w0", ways{room: 8})
	w.play("w1", ways{room: 8, slow: func(slot int64) time.Duration {
		if slot == 6 || slot == 5 {
			<-release
		}
		return 0
	}})
	first := w.learn(1, w.dieAt("save.answered", 1))
	<-first.done
	second := w.learn(2, nil)
	time.AfterFunc(150*time.Millisecond, func() { close(release) })
	w.checkSame(w.end(second, contract.CauseCompleted))
}

// TestNoWorkersForLongerThanTheSession lets the rollout session die at the server.
func TestNoWorkersForLongerThanTheSession(t *testing.T) {
	w := newWorld(t, nil)
	worker := w.play("w0", ways{})
	f := freezeAt("covered.sent", 1)
	zombie := w.freeze(1, f)
	worker.kill()
	zombie.cancel()
	w.advance(2 * time.Minute)
	w.play("w1", ways{})
	w.checkSame(w.end(w.learn(2, nil), contract.CauseCompleted))
}

// flaky plays every third slot to a tombstone.
func flaky(slot int64) rl.Outcome {
	if slot%3 == 1 {
		return rl.EnvironmentFault
	}
	return rl.Usable
}

// TestTombstones compares runs in which the same slots are dropped, with the holders of tombstones and the
// learner dying together.
func TestTombstones(t *testing.T) {
	for name, refill := range map[string]bool{"refill": true, "shrink": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := func(f *contract.RunFile) { f.Fixed.Algorithm.Refill = refill }
			w := newWorld(t, change)
			w.play("w0", ways{flaw: flaky})
			want := w.weights(w.end(w.learn(1, nil), contract.CauseCompleted))
			w.checkMetrics()

			w = newWorld(t, change)
			worker := w.play("w0", ways{flaw: flaky})
			<-w.learn(1, w.dieAt("row.written", 2)).done
			worker.kill()
			w.play("w1", ways{flaw: flaky})
			w.play("w2", ways{flaw: flaky})
			<-w.learn(2, w.dieAt("sampler.announced", 3)).done
			if got := w.weights(w.end(w.learn(3, nil), contract.CauseCompleted)); got != want {
				t.Errorf("final adapter is %s, undisturbed %s", got, want)
			}
			w.checkMetrics()
		})
	}
}

// TestNothingUsable commits steps without training.
func TestNothingUsable(t *testing.T) {
	w := newWorld(t, func(f *contract.RunFile) { f.Fixed.Algorithm.Refill = false })
	w.play("w0", ways{flaw: func(slot int64) rl.Outcome {
		if slot >= 4 && slot < 8 {
			return rl.BelowFloor
		}
		return rl.Usable
	}})
	<-w.learn(1, w.dieAt("save.submitted", 2)).done
	w.end(w.learn(2, nil), contract.CauseCompleted)
	w.checkMetrics()
}

// TestRefusedTokens has the endpoint refuse two groups: they become tombstones, here and at the worker, and
// the run is the one in which they always were.
func TestRefusedTokens(t *testing.T) {
	condemned := func(slot int64) rl.Outcome {
		if slot == 5 || slot == 6 {
			return rl.InvalidTokens
		}
		return rl.Usable
	}
	w := newWorld(t, nil)
	w.play("w0", ways{flaw: condemned})
	want := w.weights(w.end(w.learn(1, nil), contract.CauseCompleted))

	w = newWorld(t, nil)
	w.play("w0", ways{spoil: func(g rl.Group) rl.Group {
		if g.Key.Kind == rl.Train && condemned(g.Key.Slot) != rl.Usable {
			g.Members[1].Segments[0].Tokens[0] = 1 << 20 // no token of the vocabulary
		}
		return g
	}})
	<-w.learn(1, w.dieAt("sampler.announced", 2)).done
	if got := w.weights(w.end(w.learn(2, nil), contract.CauseCompleted)); got != want {
		t.Errorf("final adapter is %s, that of the run with tombstones %s", got, want)
	}
	w.checkMetrics()
}

// TestEveryGroupIsRefused is no matter of groups: the run is refused.
func TestEveryGroupIsRefused(t *testing.T) {
	w := newWorld(t, nil)
	w.script(fault.Rule{Op: "forward_backward", Count: -1, Do: fault.Fail, Category: "user"},
		fault.Rule{Op: "forward", Count: -1, Do: fault.Fail, Category: "user"})
	w.play("w0", ways{})
	if v := w.end(w.learn(1, nil), contract.CauseConfigRejected); v.Reason != "UnsupportedByEndpoint" {
		t.Errorf("reason is %s", v.Reason)
	}
}

// TestARoomForOneGroup plays group after group.
func TestARoomForOneGroup(t *testing.T) {
	w := newWorld(t, func(f *contract.RunFile) { f.Concurrency = 2 })
	w.play("w0", ways{room: 4})
	w.checkSame(w.end(w.learn(1, nil), contract.CauseCompleted))
}

// TestASilentWorker is cut off without a word, with leases in hand.
func TestASilentWorker(t *testing.T) {
	w := newWorld(t, nil)
	hung := make(chan struct{}, 64)
	w.play("w0", ways{room: 8, slow: func(int64) time.Duration {
		hung <- struct{}{}
		return time.Hour
	}})
	a := w.learn(1, nil)
	<-hung
	// It is alive and renews its leases, so nobody takes them from it; then it goes.
	w.play("w1", ways{})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	<-ctx.Done()
	w.named("w0").kill()
	w.checkSame(w.end(a, contract.CauseCompleted))
}
