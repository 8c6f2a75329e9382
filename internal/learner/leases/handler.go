// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// Handler is an exchange.Handler: the workers' view of a Table.
type Handler struct{ table *Table }

var _ exchange.Handler = (*Handler)(nil)

var errClosed = errors.New("the learner is stopping")

// Hello takes over the groups that a worker has. It waits until the table is open: before that the needed groups are
// not known, and the worker continues to play.
func (h *Handler) Hello(ctx context.Context, name string, request exchange.HelloRequest) (exchange.HelloReply, error) {
	t := h.table
	select {
	case <-t.opened:
	case <-t.closed:
		return exchange.HelloReply{}, errClosed
	case <-ctx.Done():
		return exchange.HelloReply{}, fmt.Errorf("waiting for the model: %w", ctx.Err())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	w := t.workers.observe(name, now)
	t.meet(name, w, request.Spent.Process)
	w.hello(request)
	t.helloSpending(name, w, request, now)
	t.holders.hello(name, request)
	if t.workers.arrived(name) {
		t.leaseAfter = now
	}
	t.demands.adopt(name, &t.workers, now)
	t.demands.reclaim(name, w, now, helloPatience)
	reply := exchange.HelloReply{
		Wanted: t.demands.wanted(w, now), CoveredIndex: t.notices.covered, Play: t.notices.play, Session: t.notices.session,
	}
	for _, key := range request.Playing {
		e := t.demands.entries[key]
		if e != nil && e.isLeased(name) {
			reply.Keep = append(reply.Keep, t.suspects.leaseOf(e))
			t.holders.keep(name, key)
		}
	}
	t.changes.notify(&t.demands.tally)
	return reply, nil
}

// Acquire waits for leases. The call shows that the worker is alive only when it begins, not while it waits: a
// process that hangs may have left a waiting call.
func (h *Handler) Acquire(ctx context.Context, name string, free int) ([]exchange.Lease, error) {
	h.hear(name)
	// It is not an error if the context ends while a worker waits.
	leases, _ := wait.For(ctx, &h.table.changes.leasable, func() ([]exchange.Lease, bool) {
		leases := h.grant(name, free)
		return leases, len(leases) > 0
	})
	return leases, nil
}

// hear notes that a worker has sent something.
func (h *Handler) hear(name string) {
	h.table.mu.Lock()
	defer h.table.mu.Unlock()
	h.table.workers.observe(name, h.table.now())
}

// grant leases as many groups as fit to a live worker, in order of demand except for the share of evaluations.
func (h *Handler) grant(name string, free int) []exchange.Lease {
	t := h.table
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	w := t.workers.byName[name]
	if w == nil || !t.workers.isLive(w, now) || !w.disconnected.IsZero() || !t.isBarrierOver(now) || free <= 0 {
		return nil
	}
	all, own := t.demands.tally.leased, t.demands.tally.byWorker[name]
	credits := t.load.credits.total()
	if t.demands.tally.free == 0 || all >= credits {
		return nil
	}
	suspect, others := h.suspectFor(name, w, now)
	if suspect != nil {
		t.suspects.begin(suspect, name)
		return []exchange.Lease{h.lease(suspect, name, w, now)}
	}
	if !others {
		return nil
	}
	room := min(free, credits-all, t.load.share(len(t.workers.alive(now)))-own)
	queues := h.queues(w, now)
	defer queues.stop()
	var leases []exchange.Lease
	for e := queues.head(); e != nil; e = queues.head() {
		// A worker that plays nothing is leased one group, however large: it will not have more room later.
		if all >= credits || e.lease.GroupSize > room && own+len(leases) > 0 {
			break
		}
		queues.take(e)
		e.alone = ""
		room -= e.lease.GroupSize
		all += e.lease.GroupSize
		leases = append(leases, h.lease(e, name, w, now))
	}
	return leases
}

// lease assigns the lease of a group to a worker, and returns it.
func (h *Handler) lease(e *entry, name string, w *worker, now time.Time) exchange.Lease {
	t := h.table
	t.demands.assign(e, name)
	t.holders.grant(name, e.lease.Key)
	e.granted, e.sampler = now, e.lease.Sampler
	w.playing[e.lease.Key] = true
	t.openLease(w, e.lease.Key, now)
	return t.suspects.leaseOf(e)
}

// Renew takes over the worker's report and returns a directive.
func (h *Handler) Renew(name string, renewal exchange.Renewal) exchange.Directive {
	t := h.table
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	w := t.workers.observe(name, now)
	t.workers.renew(w, renewal)
	t.suspects.lives(process{name, w.process})
	for _, progress := range renewal.Progress {
		t.suspects.progress(progress.Key, progress.MembersDone)
	}
	t.renewSpending(name, w, renewal, now)
	t.load.observe(renewal.State, now)
	t.outages.refresh(&t.workers, now)
	t.demands.moveAway(name, &t.workers, now)
	t.demands.adopt(name, &t.workers, now)
	t.demands.reclaim(name, w, now, renewPatience)
	return h.directive(name, w, now)
}

// Directive returns the worker a directive.
func (h *Handler) Directive(name string) exchange.Directive {
	t := h.table
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	return h.directive(name, t.workers.get(name, now), now)
}

// directive returns the directive for one worker. The lock is held.
func (h *Handler) directive(name string, w *worker, now time.Time) exchange.Directive {
	t := h.table
	return exchange.Directive{
		Revoked: t.demands.revoked(name, w), Credits: max(1, t.load.share(len(t.workers.alive(now)))),
		CoveredIndex: t.notices.covered, CoveredEvaluations: slices.Clone(t.notices.evaluated), Session: t.notices.session,
		Wanted: t.demands.wanted(w, now), Rejected: t.notices.rejectedAt(w), Download: t.workers.permitDownload(w, now),
		Skipped: t.outages.skipped(), Permits: t.suspects.permits(name, w, &t.demands),
	}
}

// Release takes back leases that a worker returns. Some reasons have further consequences.
func (h *Handler) Release(name string, keys []rl.Key, reason string) {
	t := h.table
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.workers.observe(name, t.now())
	for _, key := range keys {
		switch reason {
		case exchange.SamplesUnanswered:
			t.holders.lose(name, key)
			continue // the worker keeps the lease, and submits its group next
		case exchange.EnvironmentDown, exchange.NotPlayed:
			t.holders.end(name, key) // it was not played
		}
		delete(w.playing, key)
		// A worker also releases groups that it no longer stores.
		w.drop(key)
		delete(w.requested, key)
		e := t.demands.entries[key]
		if e == nil || !e.isLeased(name) {
			continue
		}
		t.demands.assign(e, "")
		if reason == exchange.PolicyMissing && e.sampler != "" {
			t.missing[e.sampler] = true
		}
	}
	t.config.Logger.Info("worker released leases", "worker", name, "leases", len(keys), "reason", reason)
	t.changes.notify(&t.demands.tally)
}

// Disconnected notes that a worker's connection broke.
func (h *Handler) Disconnected(name string) {
	t := h.table
	t.mu.Lock()
	defer t.mu.Unlock()
	t.workers.disconnect(name, t.now())
	t.config.Spending.Lose(name)
}
