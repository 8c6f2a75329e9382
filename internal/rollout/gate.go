// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"math"
	"slices"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// gate bounds how many are inside at a time. The limit may change; nobody is thrown out for it. Of those
// who wait the lowest rank goes first, and of one rank who came first.
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

// giveUp takes a waiter out of the line, or out of the gate if it was let in meanwhile.
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

// admit lets in whom there is room for. The lock is held.
func (g *gate) admit() {
	for len(g.waiting) > 0 && g.inside < g.limit {
		close(g.waiting[0].admitted)
		g.waiting = slices.Delete(g.waiting, 0, 1)
		g.inside++
	}
}

// door is a gate as one group sees it.
type door struct {
	gate *gate
	rank int64
	// left is raised when somebody leaves.
	left *signal
}

// Enter implements player.Gate.
func (d door) Enter(ctx context.Context) error { return d.gate.enter(ctx, d.rank) }

// Leave implements player.Gate.
func (d door) Leave() {
	d.gate.leave()
	d.left.raise()
}
