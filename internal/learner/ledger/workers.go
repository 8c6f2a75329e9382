// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// Report receives what a worker has spent. Reports may come out of order.
func (l *Ledger) Report(name string, spent exchange.Spent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.report(name, spent)
}

// report returns the worker, nil if it does not count. The lock is held.
func (l *Ledger) report(name string, spent exchange.Spent) *worker {
	if spent.Process == "" {
		return nil
	}
	w := l.workers[spent.Process]
	if w == nil {
		w = &worker{}
		l.workers[spent.Process] = w
		for _, other := range l.workers {
			other.lost = other.lost || other.name == name // one process of a name follows another
		}
	}
	w.recorded = artifacts.WorkerSpending{}
	w.name, w.away, w.lost, w.next = name, false, false, 0
	if spent.Used.Spent() >= w.used.Spent() {
		w.used, w.uncovered = spent.Used, spent.Uncovered
	}
	return w
}

// Renew receives what a worker has spent, with all its leases.
func (l *Ledger) Renew(name string, spent exchange.Spent, leases []exchange.Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.report(name, spent)
	if w == nil {
		return
	}
	w.renewed, w.leases = w.used, map[rl.Key]exchange.Progress{}
	for _, lease := range leases {
		w.leases[lease.Key] = lease
	}
}

// Unlease notes that a worker is to play a lease no longer that another may be given. What it has used of the lease by
// its last report, and all that it has reported since, is held: the other may be given the same without paying.
func (l *Ledger) Unlease(name string, key rl.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.workers {
		lease, played := w.leases[key]
		if w.name != name {
			continue
		}
		if !played {
			// It has released the lease, or has not reported it: what it used of the lease is within this.
			lease.Used, w.uncovered = w.uncovered, spending.Usage{}
			lease.Used.UnconfirmedTokens = 0
		}
		since := w.used.Sub(w.renewed)
		since.UnconfirmedTokens = 0
		w.renewed = w.used
		l.held = l.held.Add(lease.Used).Add(since)
		if !w.lost || !played {
			delete(w.leases, key)
			continue
		}
		w.leases[key] = exchange.Progress{Key: key, Next: lease.Next}
	}
}

// Lose notes that a worker is lost, with leases of which it has reported nothing yet, and what these may have cost. If
// it takes groups with it that are sampled again, all of its groups that no state covers are held.
func (l *Ledger) Lose(name string, unreported int64, withGroups bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.workers {
		if w.name == name && withGroups {
			l.held, w.uncovered = l.held.Add(w.uncovered), spending.Usage{}
		}
		if w.name == name && !w.lost {
			w.lost, w.next = true, unreported
		}
	}
}

// Settle gives up the workers of an earlier attempt that have not reported to this one: others play their leases.
// Leases that they were given after the last record may have cost their share of unrecorded. A worker that was lost by
// then was given none.
func (l *Ledger) Settle(unrecorded int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	workers := int64(0)
	for _, w := range l.workers {
		if !w.isLost() {
			workers++
		}
	}
	for _, w := range l.workers {
		if w.away {
			if !w.isLost() {
				w.next = unrecorded / workers
			}
			w.away, w.lost = false, true
			l.held = l.held.Add(w.recorded.Uncovered)
			w.recorded.Uncovered = spending.Usage{}
		}
	}
}
