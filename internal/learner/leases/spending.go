// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// Spending adds up what workers spend. Its methods are called with the lock of the table.
type Spending interface {
	// Report receives what a worker has spent, and Renew also all its leases.
	Report(worker string, spent exchange.Spent)
	Renew(worker string, spent exchange.Spent, leases []exchange.Progress)
	// Unlease is called when a worker is to play a lease no longer that another may be given.
	Unlease(worker string, key rl.Key)
	// Lose is called when a worker is lost, with what the leases may have cost that it has not reported.
	// withGroups is set if it takes groups with it that it stored, and that are demanded and not known.
	Lose(worker string, unreported int64, withGroups bool)
	// Settle is called once no worker of an earlier attempt is waited for any longer, with what all leases together may
	// have cost that no record knows of.
	Settle(unrecorded int64)
}

// nobody is a Spending that nobody reads.
type nobody struct{}

func (nobody) Report(string, exchange.Spent)                     {}
func (nobody) Renew(string, exchange.Spent, []exchange.Progress) {}
func (nobody) Unlease(string, rl.Key)                            {}
func (nobody) Lose(string, int64, bool)                          {}
func (nobody) Settle(int64)                                      {}

// Report implements exchange.Handler.
func (h *Handler) Report(name string, spent exchange.Spent) {
	t := h.table
	t.mu.Lock()
	defer t.mu.Unlock()
	t.workers.observe(name, t.config.Now())
	t.config.Spending.Report(name, spent)
}

// renewSpending hands over what a worker has spent. What its leases may cost next is not known before their first
// requests.
func (t *Table) renewSpending(name string, w *worker, renewal exchange.Renewal) {
	w.reported = map[rl.Key]bool{}
	leases := slices.Clone(renewal.Progress)
	for i, lease := range leases {
		w.reported[lease.Key] = true
		if lease.Next == 0 {
			leases[i].Next = t.mostNext(lease.Key)
		}
	}
	t.config.Spending.Renew(name, renewal.Spent, leases)
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
func (t *Table) lose(name string, w *worker, withGroups bool) {
	unreported := int64(0)
	for key := range w.playing {
		if !w.reported[key] {
			unreported += t.mostNext(key)
		}
	}
	t.config.Spending.Lose(name, unreported, withGroups)
}

// isOnlyStored reports whether a worker stores a group that is demanded and not known.
func (t *Table) isOnlyStored(w *worker) bool {
	for key := range w.stored {
		if e := t.demands.entries[key]; e != nil && !e.isKnown() {
			return true
		}
	}
	return false
}

// loseWorkers notes which workers are lost, before others are given their leases.
func (t *Table) loseWorkers(now time.Time) {
	for name, w := range t.workers.byName {
		if !t.workers.isAlive(name, now) {
			t.lose(name, w, t.isOnlyStored(w))
		}
	}
	if !t.leaseAfter.IsZero() && now.After(t.leaseAfter) {
		t.config.Spending.Settle(t.mostLeased())
	}
}
