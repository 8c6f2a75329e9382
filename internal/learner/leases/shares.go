// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"iter"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// shares decides between training and evaluations if both have a group to lease. It counts episodes instead of time,
// so that the number of evaluation episodes leased during a step does not depend on their speed. Its owner's lock
// guards it.
type shares struct {
	// evaluation is Config.EvaluationShare.
	evaluation float64
	// due is the number of evaluation episodes that should have been leased and were not. It is negative if a group of an
	// evaluation was larger than the number due.
	due float64
}

// pick returns the group that is leased next. training or evaluation is nil if it has none to lease.
func (s *shares) pick(training, evaluation *entry) *entry {
	const rounding = 1e-9 // the error of sums of fractions
	if training == nil || evaluation != nil && s.due > rounding {
		return evaluation
	}
	return training
}

// charge counts a group that was leased while one of the other kind waited.
func (s *shares) charge(leased *entry) {
	episodes := float64(leased.lease.GroupSize)
	if leased.lease.Key.Kind == rl.Evaluate {
		s.due -= episodes * (1 - s.evaluation)
	} else {
		s.due += episodes * s.evaluation
	}
}

// queues has the groups that a worker can be leased, the most urgent first.
type queues struct {
	shares               *shares
	training, evaluation queue
}

// queue has groups of one kind. Its head is nil when it is empty.
type queue struct {
	head *entry
	next func() (*entry, bool)
	stop func()
}

// queues returns the groups that a worker can be leased. The lock is held until stop.
func (h *Handler) queues(w *worker, now time.Time) *queues {
	return &queues{
		shares: &h.table.shares, training: newQueue(h.leasable(rl.Train, w, now)),
		evaluation: newQueue(h.leasable(rl.Evaluate, w, now)),
	}
}

func newQueue(entries iter.Seq[*entry]) queue {
	next, stop := iter.Pull(entries)
	q := queue{next: next, stop: stop}
	q.advance()
	return q
}

func (q *queue) advance() { q.head, _ = q.next() }

// leasable yields the groups of a kind that no worker plays or stores, and that this worker can play beside others.
func (h *Handler) leasable(kind rl.Kind, w *worker, now time.Time) iter.Seq[*entry] {
	t := h.table
	isPlayedAlone := func(e *entry) bool { return t.suspects.isSuspect(e.lease.Key) && t.workers.host(now) != "" }
	return func(yield func(*entry) bool) {
		for e := range h.unplayed(kind, w, now) {
			if !isPlayedAlone(e) && !yield(e) {
				return
			}
		}
	}
}

// unplayed yields the groups of a kind that no worker plays or stores, and that this worker can play.
func (h *Handler) unplayed(kind rl.Kind, w *worker, now time.Time) iter.Seq[*entry] {
	t := h.table
	return func(yield func(*entry) bool) {
		for e := range t.demands.inOrder(kind) {
			if !e.isLeased("") || t.workers.isStored(e.lease.Key, now) || t.missing[e.lease.Sampler] || t.outages.excludes(w,
				e.lease.Environment) {
				continue
			}
			if !yield(e) {
				return
			}
		}
	}
}

// head returns the group that is leased next; nil if there is none.
func (q *queues) head() *entry { return q.shares.pick(q.training.head, q.evaluation.head) }

// take removes the group that head returned.
func (q *queues) take(e *entry) {
	if q.training.head != nil && q.evaluation.head != nil {
		q.shares.charge(e)
	}
	if e == q.training.head {
		q.training.advance()
	} else {
		q.evaluation.advance()
	}
}

func (q *queues) stop() {
	q.training.stop()
	q.evaluation.stop()
}
