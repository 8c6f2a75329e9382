// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// Spending adds up the spending of workers. Its methods are called with the lock of the table.
type Spending interface {
	// Report receives the spending of a worker, and the groups that had ended by then. Hello and Renew also receive the
	// spending of each group, and the open leases: all groups that the worker may play, each with its maximum cost until
	// the worker reports again.
	Report(worker string, spent exchange.Spent, ended []rl.Key)
	Hello(worker string, spent exchange.Spent, groups []exchange.GroupSpent, open []exchange.Progress)
	Renew(worker string, renewal exchange.Renewal)
	// Lease is called when a process of a worker is to play a group, which it may already play. OpenLease is called when
	// the lease is sent to the process, with the maximum cost of the group until the process reports.
	Lease(worker, process string, key rl.Key)
	OpenLease(process string, key rl.Key, most int64)
	// Cover is called when the training slots below an index are covered, and CoverEvaluation when an evaluation is.
	Cover(index int64)
	CoverEvaluation(e exchange.Evaluation)
	// Lose is called when a worker is lost.
	Lose(worker string)
	// Settle is called once no worker of an earlier attempt is awaited any longer, with the maximum cost of all leases
	// that no record has.
	Settle(unrecorded int64)
}

// nobody is a Spending that ignores all reports.
type nobody struct{}

func (nobody) Report(string, exchange.Spent, []rl.Key)                                  {}
func (nobody) Hello(string, exchange.Spent, []exchange.GroupSpent, []exchange.Progress) {}
func (nobody) Renew(string, exchange.Renewal)                                           {}
func (nobody) Lease(string, string, rl.Key)                                             {}
func (nobody) OpenLease(string, rl.Key, int64)                                          {}
func (nobody) Cover(int64)                                                              {}
func (nobody) CoverEvaluation(exchange.Evaluation)                                      {}
func (nobody) Lose(string)                                                              {}
func (nobody) Settle(int64)                                                             {}

// Report implements exchange.Handler.
func (h *Handler) Report(name string, spent exchange.Spent, ended []rl.Key) {
	t := h.table
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.workers.observe(name, t.now())
	for _, key := range ended {
		delete(w.granted, key)
	}
	t.config.Spending.Report(name, spent, ended)
}

// helloSpending hands over the spending of a worker that says Hello, and its open leases. A group that is both in
// progress and stored has ended before the message was made.
func (t *Table) helloSpending(name string, w *worker, request exchange.HelloRequest, now time.Time) {
	var open []exchange.Progress
	for _, key := range request.Playing {
		if _, stored := w.stored[key]; !stored {
			open = append(open, exchange.Progress{Key: key, Next: t.mostNext(key, 0)})
		}
	}
	open = w.withGranted(open, now, helloPatience)
	t.config.Spending.Hello(name, request.Spent, request.Groups, open)
}

// renewSpending hands over the spending of a worker, and its open leases. The next cost of a lease is not known before
// the first request of its group. A group whose submission has arrived may still be listed.
func (t *Table) renewSpending(name string, w *worker, renewal exchange.Renewal, now time.Time) {
	var open []exchange.Progress
	for _, lease := range renewal.Progress {
		if _, stored := w.stored[lease.Key]; stored {
			continue
		}
		if lease.Next == 0 {
			lease.Next = t.mostNext(lease.Key, lease.MembersDone)
		}
		open = append(open, lease)
	}
	renewal.Progress = w.withGranted(open, now, renewPatience)
	t.config.Spending.Renew(name, renewal)
}

// openLease notes that a lease is sent to a worker.
func (t *Table) openLease(w *worker, key rl.Key, now time.Time) {
	most := t.mostNext(key, 0)
	w.granted[key] = granted{at: now, most: w.granted[key].most + most}
	t.config.Spending.OpenLease(w.process, key, most)
}

// withGranted adds to the leases that a worker lists the leases that were granted so recently that the worker may
// have received them after it made the list.
func (w *worker) withGranted(listed []exchange.Progress, now time.Time, patience time.Duration) []exchange.Progress {
	for _, lease := range listed {
		delete(w.granted, lease.Key)
	}
	maps.DeleteFunc(w.granted, func(_ rl.Key, g granted) bool { return now.Sub(g.at) >= patience })
	for key, g := range w.granted {
		listed = append(listed, exchange.Progress{Key: key, Next: g.most})
	}
	return listed
}

// mostNext is the maximum cost of the next request of each member of a group that is not done.
func (t *Table) mostNext(key rl.Key, done int) int64 {
	if e := t.demands.entries[key]; e != nil {
		return exchange.UnreportedRequests * int64(e.lease.GroupSize-done) * t.config.Request[e.lease.Environment]
	}
	return exchange.UnreportedRequests * t.config.LargestGroup // it is no longer demanded
}

// mostLeased is the maximum cost of the next requests of all leases that workers may have had.
func (t *Table) mostLeased() int64 {
	most := int64(0)
	for _, request := range t.config.Request {
		most = max(most, request)
	}
	return exchange.UnreportedRequests * int64(t.config.Concurrency) * most
}

// loseWorkers notes which workers are lost, before others are given their leases.
func (t *Table) loseWorkers(now time.Time) {
	for name := range t.workers.byName {
		if !t.workers.isAlive(name, now) {
			t.config.Spending.Lose(name)
		}
	}
	if t.isBarrierOver(now) {
		t.config.Spending.Settle(t.mostLeased())
	}
}

// AwaitBarrier waits until the barrier is over, which happens at once when all workers of the attempt before have said
// Hello. From then on, the possible spending of all other workers is unconfirmed. It does nothing before Open.
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

// settle reports whether no worker of the attempt before is awaited any longer. It settles the spending once the
// barrier is over.
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

// isBarrierOver reports whether groups may be leased.
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
