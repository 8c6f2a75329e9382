// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// worker is a worker process.
type worker struct {
	name string
	used spending.Usage
	// met is set once it has said Hello to this learner. listed is the value of used when it last listed its groups, and
	// groups has the usage of each group at that time.
	met    bool
	listed spending.Usage
	groups map[rl.Key]spending.Usage
	// leases are the open leases, each with the maximum cost of its group since the worker's last report.
	leases map[rl.Key]int64
	// reported and renewed are the sequence numbers of the last message, and of the last one that lists all leases.
	reported, renewed int64
	// away is set while a worker of an earlier attempt has not reported to this one, and lost once it is no longer
	// expected. recorded is the earlier attempt's record of it, and next the maximum cost of the leases of that attempt.
	away, lost bool
	recorded   artifacts.WorkerSpending
	next       int64
	// uncovered is the part of used that belongs to groups that no state covers, and kept the part that stays held for
	// good.
	uncovered, kept spending.Usage
}

// held returns the part of used that belongs to groups that another process may have been given as well. contested
// are the groups that another process was given after this one.
func (w *worker) held(contested []claimed) spending.Usage {
	if !w.met {
		return w.recorded.Held.Add(w.recorded.Uncovered).Min(w.used)
	}
	// A worker that has died lists no more groups: its usage since the last list stays held when they are covered.
	held, open := w.kept, w.isLost() && len(contested) > 0
	for _, c := range contested {
		held, open = held.Add(w.groups[c.key]), open || !c.covered
	}
	if open {
		since := w.used.Sub(w.listed) // any of it may belong to such a group
		since.UnconfirmedTokens = 0
		held = held.Add(since)
	}
	return held.Min(w.used)
}

// mostNext returns the maximum cost of the worker's requests since its last report.
func (w *worker) mostNext() int64 {
	next := w.next
	for _, most := range w.leases {
		next += most
	}
	return next
}

// isLost reports whether the worker is lost, or was when the attempt before recorded it and has not reported since.
func (w *worker) isLost() bool { return w.lost || w.away && w.recorded.Lost }

// record returns the worker's record for the next attempt. covered reports whether a state covers all groups of the
// worker that this learner knows, and gave whether it gave any group to a process that had not played it.
func (w *worker) record(contested []claimed, covered, gave bool) artifacts.WorkerSpending {
	record := artifacts.WorkerSpending{
		Name: w.name, Used: w.used, Uncovered: w.uncovered, Next: w.mostNext(), Lost: w.isLost(),
		Absent: !w.met && (w.recorded.Absent || gave),
	}
	record.Held = w.held(contested)
	switch {
	case !w.met:
		record.Held, record.Uncovered = w.recorded.Held, w.recorded.Uncovered
	case covered:
		record.Uncovered = spending.Usage{} // The worker reported before the state was saved.
	}
	return record
}

// Report receives the spending of a worker, and the groups that had ended by then. Reports may come out of order.
func (l *Ledger) Report(name string, spent exchange.Spent, ended []rl.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.report(name, spent); w != nil {
		for _, key := range ended {
			delete(w.leases, key)
		}
	}
}

// report takes over the spending of a worker, and returns the worker; nil if the worker does not count its spending.
// The lock is held.
func (l *Ledger) report(name string, spent exchange.Spent) *worker {
	if spent.Process == "" {
		return nil
	}
	w := l.workers[spent.Process]
	if w == nil {
		w = &worker{leases: map[rl.Key]int64{}}
		l.workers[spent.Process] = w
		for _, other := range l.workers {
			other.lost = other.lost || other.name == name // one process of a name follows another
		}
		w.lost = true
	}
	if w.lost {
		select {
		case l.joined <- struct{}{}:
		default:
		}
	}
	w.name, w.away, w.lost, w.next = name, false, false, 0
	newer := spent.Sequence >= w.reported
	if spent.Sequence == 0 {
		newer = spent.Used.Spent() >= w.used.Spent()
	}
	if newer {
		w.used, w.uncovered, w.reported = spent.Used, spent.Uncovered, spent.Sequence
	}
	return w
}

// open takes over the leases that are open after a message, each with the maximum cost of its group until the next
// message.
func (w *worker) open(sequence int64, leases []exchange.Progress) {
	if sequence < w.renewed {
		return // The message is older than the known state.
	}
	w.renewed = sequence
	clear(w.leases)
	for _, lease := range leases {
		w.leases[lease.Key] = lease.Next
	}
}

// Hello receives the spending of a worker, the spending of each group that no state covers, and its open leases. From
// now on, only its usage of groups that others were given is held.
func (l *Ledger) Hello(name string, spent exchange.Spent, groups []exchange.GroupSpent, open []exchange.Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.report(name, spent)
	if w == nil {
		return
	}
	w.open(spent.Sequence, open)
	met, absent := w.met, w.recorded.Absent
	if !met {
		w.met, w.kept, w.recorded = true, w.recorded.Held, artifacts.WorkerSpending{}
		w.listed, w.groups = spending.Usage{}, map[rl.Key]spending.Usage{}
	}
	for _, group := range groups {
		covered, here := l.claims.isCovered(group.Key)
		switch {
		case !met && (here || absent && (covered || group.Key.Kind == rl.Evaluate)):
			w.kept = w.kept.Add(group.Used) // another may have played it while the worker was not here
		case !covered:
			l.claims.join(spent.Process, group.Key)
		}
	}
	w.list(spent, groups)
}

// list takes over the usage of groups.
func (w *worker) list(spent exchange.Spent, groups []exchange.GroupSpent) {
	if spent.Used.Spent() < w.listed.Spent() {
		return // The list is older than the known one.
	}
	w.listed = spent.Used
	for _, group := range groups {
		w.groups[group.Key] = group.Used
	}
}

// Renew receives the spending of a worker, its open leases, and the groups whose usage has grown since its last list.
func (l *Ledger) Renew(name string, renewal exchange.Renewal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.report(name, renewal.Spent)
	if w == nil {
		return
	}
	w.open(renewal.Spent.Sequence, renewal.Progress)
	if w.met {
		w.list(renewal.Spent, renewal.Groups)
	}
}

// OpenLease notes that a lease is sent to a process, with the maximum cost of its group until the next report.
func (l *Ledger) OpenLease(process string, key rl.Key, most int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.workers[process]; w != nil {
		w.leases[key] += most // it may have played the group before, and not have reported that
	}
}

// Lease notes that a worker is to play a group. process names its process; it is empty for a worker that does not
// count its spending.
func (l *Ledger) Lease(name, process string, key rl.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.claims.give(cmp.Or(process, name), key)
}

// Cover notes that the training slots below an index are covered.
func (l *Ledger) Cover(index int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(l.claims.cover(index))
}

// CoverEvaluation notes that an evaluation is covered.
func (l *Ledger) CoverEvaluation(e exchange.Evaluation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(l.claims.coverEvaluation(e))
}

// forget forgets the usage of groups by processes. The lock is held.
func (l *Ledger) forget(groups map[rl.Key]string) {
	for key, process := range groups {
		if w := l.workers[process]; w != nil {
			delete(w.groups, key)
		}
	}
}

// Lose notes that a worker is lost.
func (l *Ledger) Lose(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.workers {
		w.lost = w.lost || w.name == name
	}
}

// Settle gives up the workers of an earlier attempt that have not reported to this one: others play their leases.
// unrecorded is the maximum cost of the leases that workers were given after the last record. It is shared among the
// workers of that time. A worker that was lost by then was given no leases.
func (l *Ledger) Settle(unrecorded int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.workers {
		if !w.away {
			continue
		}
		if !w.isLost() {
			w.next += unrecorded / max(1, w.recorded.Among)
		}
		w.away, w.lost = false, true
	}
}
