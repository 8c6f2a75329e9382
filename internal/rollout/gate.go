// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"math"
	"slices"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rollout/episode"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// gate is a semaphore whose limit may change; callers that have entered stay. Waiting callers enter in the order of
// their ranks, the lowest first, and callers of the same rank in the order in which they came.
type gate struct {
	mu            sync.Mutex
	limit, inside int
	waiting       []*waiter
}

type waiter struct {
	rank int64
	// admitted is closed when the waiter is inside.
	admitted chan struct{}
}

// rank orders the members of groups: training before evaluation, then by slot, so that the slot that the
// learner waits for is not behind others.
func rank(key rl.Key) int64 {
	if key.Kind == rl.Evaluate {
		return math.MaxInt64/2 + key.Slot
	}
	return key.Slot
}

// enter waits until there is room. An error is the context's.
func (g *gate) enter(ctx context.Context, rank int64) error {
	w := &waiter{rank: rank, admitted: make(chan struct{})}
	g.mu.Lock()
	at, _ := slices.BinarySearchFunc(g.waiting, rank, func(w *waiter, rank int64) int {
		if w.rank <= rank {
			return -1
		}
		return 1
	})
	g.waiting = slices.Insert(g.waiting, at, w)
	g.admit()
	g.mu.Unlock()
	select {
	case <-w.admitted:
		return nil
	case <-ctx.Done():
		g.giveUp(w)
		return ctx.Err()
	}
}

// giveUp removes a waiter from the line, or from the gate if it was admitted meanwhile.
func (g *gate) giveUp(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at := slices.Index(g.waiting, w); at >= 0 {
		g.waiting = slices.Delete(g.waiting, at, at+1)
		return
	}
	g.inside--
	g.admit()
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.admit()
}

// setLimit changes how many may be inside.
func (g *gate) setLimit(limit int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limit = limit
	g.admit()
}

func (g *gate) currentLimit() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.limit
}

// admit admits waiters while there is room. The lock is held.
func (g *gate) admit() {
	for len(g.waiting) > 0 && g.inside < g.limit {
		close(g.waiting[0].admitted)
		g.waiting = slices.Delete(g.waiting, 0, 1)
		g.inside++
	}
}

// groupGate is a gate that the members of one group enter with the group's rank.
type groupGate struct {
	gate *gate
	rank int64
	// changes is notified when an episode leaves.
	changes *wait.Signal
}

var _ episode.Gate = groupGate{}

// Enter implements episode.Gate.
func (g groupGate) Enter(ctx context.Context) error { return g.gate.enter(ctx, g.rank) }

// Leave implements episode.Gate.
func (g groupGate) Leave() {
	g.gate.leave()
	g.changes.Notify()
}
