// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// Spending adds up what workers spend. Its methods are called with the lock of the table.
type Spending interface {
	// Report receives what a worker has spent. Hello and Renew also receive on which groups.
	Report(worker string, spent exchange.Spent)
	Hello(worker string, spent exchange.Spent, groups []exchange.GroupSpent)
	Renew(worker string, renewal exchange.Renewal)
	// Lease is called when a process of a worker is to play a group.
	Lease(worker, process string, key rl.Key)
	// Cover is called when the training slots below an index are covered, and CoverEvaluation when an evaluation is.
	Cover(index int64)
	CoverEvaluation(e exchange.Evaluation)
	// Lose is called when a worker is lost, with what the leases may have cost that it has not reported.
	Lose(worker string, unreported int64)
	// Settle is called once no worker of an earlier attempt is waited for any longer, with what all leases together may
	// have cost that no record knows of.
	Settle(unrecorded int64)
}

// nobody is a Spending that nobody reads.
type nobody struct{}

func (nobody) Report(string, exchange.Spent)                       {}
func (nobody) Hello(string, exchange.Spent, []exchange.GroupSpent) {}
func (nobody) Renew(string, exchange.Renewal)                      {}
func (nobody) Lease(string, string, rl.Key)                        {}
func (nobody) Cover(int64)                                         {}
func (nobody) CoverEvaluation(exchange.Evaluation)                 {}
func (nobody) Lose(string, int64)                                  {}
func (nobody) Settle(int64)                                        {}

// Report implements exchange.Handler.
func (h *Handler) Report(name string, spent exchange.Spent) {
	t := h.table
	t.mu.Lock()
	defer t.mu.Unlock()
	t.workers.observe(name, t.now())
	t.config.Spending.Report(name, spent)
}

// renewSpending hands over what a worker has spent. What its leases may cost next is not known before their first
// requests.
func (t *Table) renewSpending(name string, w *worker, renewal exchange.Renewal) {
	w.reported = map[rl.Key]bool{}
	renewal.Progress = slices.Clone(renewal.Progress)
	for i, lease := range renewal.Progress {
		w.reported[lease.Key] = true
		if lease.Next == 0 {
			renewal.Progress[i].Next = t.mostNext(lease.Key)
		}
	}
	t.config.Spending.Renew(name, renewal)
}

// mostNext is what the next requests of each member of a lease may cost.
func (t *Table) mostNext(key rl.Key) int64 {
	e := t.demands.entries[key]
	if e == nil {
		return 0
	}
	return exchange.UnreportedRequests * int64(e.lease.GroupSize) * t.config.Request[e.lease.Environment]
}

// mostLeased is what the next requests of all leases that workers may have had may cost.
func (t *Table) mostLeased() int64 {
	most := int64(0)
	for _, request := range t.config.Request {
		most = max(most, request)
	}
	return exchange.UnreportedRequests * int64(t.config.Concurrency) * most
}

// lose notes that a worker may not report any more. It is no longer lost once it does.
func (t *Table) lose(name string, w *worker) {
	unreported := int64(0)
	for key := range w.playing {
		if !w.reported[key] {
			unreported += t.mostNext(key)
		}
	}
	t.config.Spending.Lose(name, unreported)
}

// loseWorkers notes which workers are lost, before others are given their leases.
func (t *Table) loseWorkers(now time.Time) {
	for name, w := range t.workers.byName {
		if !t.workers.isAlive(name, now) {
			t.lose(name, w)
		}
	}
	if t.isBarrierOver(now) {
		t.config.Spending.Settle(t.mostLeased())
	}
}

// AwaitBarrier waits until the barrier is over, which it is at once when all workers of the attempt before have said
// Hello. What the others may have spent is unconfirmed from then on. It does nothing before Open.
func (t *Table) AwaitBarrier(ctx context.Context) error {
	for {
		changed := t.Changed()
		if t.settle() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for the workers of the attempt before: %w", context.Cause(ctx))
		}
	}
}

// settle reports whether no worker of the attempt before is waited for.
func (t *Table) settle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.leaseAfter.IsZero() {
		return true
	}
	over := t.isBarrierOver(t.now())
	if over {
		t.config.Spending.Settle(t.mostLeased())
	}
	return over
}

// isBarrierOver reports whether groups are leased.
func (t *Table) isBarrierOver(now time.Time) bool {
	return !t.leaseAfter.IsZero() && !now.Before(t.leaseAfter)
}

// noteLease notes that a worker is to play a group.
func (t *Table) noteLease(name string, key rl.Key) {
	process := ""
	if w := t.workers.byName[name]; w != nil {
		process = w.process
	}
	t.config.Spending.Lease(name, process, key)
}
