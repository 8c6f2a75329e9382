// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// line has goroutines that wait to enter a gate.
type line struct {
	gate     gate
	mu       sync.Mutex
	admitted []int64
}

func (l *line) join(ctx context.Context, rank int64) {
	go func() {
		if l.gate.enter(ctx, rank) == nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.admitted = append(l.admitted, rank)
		}
	}()
	synctest.Wait()
}

func (l *line) check(t *testing.T, want ...int64) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if diff := cmp.Diff(want, slices.Clone(l.admitted)); diff != "" {
		t.Errorf("admitted (-want +got):\n%s", diff)
	}
}

func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l line
		for _, rank := range []int64{3, 1, 2, 1, 4} {
			l.join(t.Context(), rank)
		}
		l.check(t)
		l.gate.setLimit(2)
		l.check(t, 1, 1)
		l.gate.leave()
		l.check(t, 1, 1, 2)
		// A lower limit removes no caller, and admits no other before there is room again.
		l.gate.setLimit(1)
		l.gate.leave()
		l.check(t, 1, 1, 2)
		l.gate.leave()
		l.check(t, 1, 1, 2, 3)
		l.gate.setLimit(9)
		l.check(t, 1, 1, 2, 3, 4)
	})
}

func TestGateRemovesWaitersThatGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l line
		ctx, cancel := context.WithCancel(t.Context())
		l.join(ctx, 1)
		l.join(t.Context(), 2)
		cancel()
		synctest.Wait()
		l.gate.setLimit(1)
		l.check(t, 2)
	})
}

func TestGateReleasesAPlaceThatCameTooLate(t *testing.T) {
	var g gate
	w := &waiter{admitted: make(chan struct{})}
	g.waiting = []*waiter{w}
	g.setLimit(1)
	g.giveUp(w)
	if err := g.enter(t.Context(), 0); err != nil || g.inside != 1 {
		t.Errorf("enter: %v with %d inside", err, g.inside)
	}
}

func TestRank(t *testing.T) {
	train, evaluate := rl.Key{Slot: 1 << 20}, rl.Key{Kind: rl.Evaluate, Slot: 0}
	if rank(train) >= rank(evaluate) || rank(rl.Key{Slot: 1}) >= rank(rl.Key{Slot: 2}) {
		t.Errorf("ranks: training %v, evaluation %v, slot 1 %v, slot 2 %v, want training before evaluation and 1 before 2",
			rank(train), rank(evaluate), rank(rl.Key{Slot: 1}), rank(rl.Key{Slot: 2}))
	}
}

func TestOutbox(t *testing.T) {
	var o outbox
	evaluation := rl.Key{Kind: rl.Evaluate, Evaluation: "plan"}
	o.add(evaluation, trainKey(5), trainKey(3), trainKey(5))
	o.add(trainKey(4), trainKey(3))
	o.remove(func(key rl.Key) bool { return key == trainKey(4) })
	var got []rl.Key
	for range 3 {
		key, err := o.next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, key)
	}
	if diff := cmp.Diff([]rl.Key{trainKey(3), trainKey(5), evaluation}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if key, err := o.next(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("next of an empty outbox = %v, %v", key, err)
	}
}
