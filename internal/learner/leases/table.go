// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package leases decides which worker plays which group: it leases groups in slot order, receives the groups that
// workers submit, and knows the groups that each worker stores and plays. It is the learner's side of the exchange, and
// does not depend on Tinker, optimizer steps or files.
//
// Consumers demand groups, each a list of leases in order; the demand that was made first is served first, but
// evaluations have a share while training also has groups to lease. A group that is demanded and not known yet is, in
// this order: requested from a live worker that stores it, awaited from the worker that plays it, or leased to a worker
// that has room. So a group is sampled again only when no live worker has it. Nothing is leased until the workers
// that a former learner left behind have had time to report their groups.
//
// Whether a group is accepted depends on its key alone, never on which of several groups of one key came
// first: a group is a function of its key, and a second one is a duplicate.
//
// A Table is the learner's view and guards all state with one lock; its Handler is the workers' view. Shared state is
// divided among demands, workers, notices and load, which have no locks of their own.
package leases

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// Config configures a Table.
type Config struct {
	// Play is the JSON of contract.Play, the settings that workers need.
	Play []byte
	// Concurrency limits the episodes in progress.
	Concurrency int
	// EvaluationShare is the share of evaluations in the leased episodes while training also has groups to lease. It
	// ranges from 0, with which evaluations use only idle capacity, to 1.
	EvaluationShare float64
	// Silence is the time without a message after which a worker's leases are given to others.
	Silence time.Duration
	// Barrier is the time after Open in which nothing is leased, so that workers can report their groups.
	Barrier time.Duration
	// DropConstant reports whether nothing can be learned from a training group, given the grouping of the run. Such a
	// group becomes a tombstone. If DropConstant is nil, all groups are kept.
	DropConstant func(rl.Group) bool
	// Environments are the environments of training. The value says whether an environment's groups are dropped while no
	// worker can play it and other environments can be played.
	Environments map[string]bool
	// SkipAfter is the time for which an environment has to be unavailable before its groups are dropped.
	SkipAfter time.Duration
	// StepRewards is set if the run compares single steps, so that training groups have rewards of steps.
	StepRewards bool
	// References is set if training groups have log-probabilities of a reference.
	References bool
	// Teachers are the environments whose training groups have log-probabilities of a teacher.
	Teachers map[string]bool
	// Spending receives the spending of workers. It may be nil. Request is the maximum cost of one request, by
	// environment. LargestGroup is the maximum cost of one request of each member of the largest group.
	Spending     Spending
	Request      map[string]int64
	LargestGroup int64
	Logger       *slog.Logger
	Now          func() time.Time
}

// Table holds the leases of a run. Its methods may be called concurrently.
type Table struct {
	config  Config
	opened  chan struct{}
	closed  chan struct{}
	changes changes

	mu sync.Mutex
	// leaseAfter is the end of the barrier; it is zero before Open. ticked is the time of the last Tick.
	leaseAfter, ticked time.Time
	demands            demands
	workers            workers
	notices            notices
	load               load
	outages            outages
	shares             shares
	holders            holders
	suspects           suspects
	// missing are the paths of sampler weights that a worker did not find.
	missing  map[string]bool
	counters Counters
	// faults has the newest fault of each environment.
	faults map[string]string
	// rejections counts how often the outcome of a known group changed.
	rejections int64
}

// NewTable makes a table that demands nothing.
func NewTable(config Config) *Table {
	if config.Spending == nil {
		config.Spending = nobody{}
	}
	t := &Table{
		config: config, opened: make(chan struct{}), closed: make(chan struct{}),
		demands: newDemands(), workers: newWorkers(config.Silence), notices: notices{play: config.Play},
		load: newLoad(config.Concurrency), missing: map[string]bool{}, faults: map[string]string{},
		outages: outages{skippable: config.Environments, skipAfter: config.SkipAfter},
		shares:  shares{evaluation: config.EvaluationShare},
		holders: newHolders(), suspects: newSuspects(config.Logger),
	}
	t.demands.leased = t.noteLease
	return t
}

// Handler returns the workers' view of the table.
func (t *Table) Handler() *Handler { return &Handler{table: t} }

// Expect names the workers that a former learner had: the barrier is over early once all of them have said
// Hello. It is called before Open.
func (t *Table) Expect(names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.workers.expect(names)
}

// Expected names the workers for which the next learner has to wait: the live ones, and until the end of the barrier
// also the ones that have not said Hello.
func (t *Table) Expected() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	names := slices.Clone(t.workers.alive(now))
	if !t.isBarrierOver(now) {
		names = slices.AppendSeq(names, maps.Keys(t.workers.expected))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Open admits workers: from now on Hello is answered, and after the barrier groups are leased. Further calls
// do nothing.
func (t *Table) Open() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.leaseAfter.IsZero() {
		return
	}
	t.raiseBarrier(t.config.Now())
	close(t.opened)
}

// raiseBarrier stops leases for a while, in which workers can report their groups.
func (t *Table) raiseBarrier(now time.Time) {
	t.leaseAfter = now.Add(t.config.Barrier)
	if t.config.Barrier <= 0 {
		t.changes.notifyAll()
		return
	}
	time.AfterFunc(t.config.Barrier, t.changes.notifyAll)
}

// now returns the time. If Tick was not called for longer than a worker may be silent, the learner itself was stopped,
// for example because its machine was paused. It could hear no worker in that time, so all workers that were alive
// before have the full time again to send something, and a new barrier begins. The lock is held.
func (t *Table) now() time.Time {
	now := t.config.Now()
	if t.ticked.IsZero() || now.Sub(t.ticked) <= t.config.Silence {
		return now
	}
	t.config.Logger.Warn("learner was stopped for a while; it waits for its workers", "seconds",
		now.Sub(t.ticked).Seconds())
	t.workers.excuse(t.ticked, now)
	if !t.leaseAfter.IsZero() {
		t.raiseBarrier(now)
	}
	t.ticked = now
	return now
}

// Close ends the calls of workers that wait for the table to open. It is called once.
func (t *Table) Close() { close(t.closed) }

// Changed is closed at the next change that a waiting caller may want to look at.
func (t *Table) Changed() <-chan struct{} { return t.changes.any.Changed() }

// Tick takes leases from workers that are lost and raises the limit of the load. It is called about once a
// second.
func (t *Table) Tick() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	t.ticked = now
	t.load.credits.grow(now)
	t.loseWorkers(now)
	for key, e := range t.demands.entries {
		if e.isKnown() || e.worker == "" || t.workers.isAlive(e.worker, now) {
			continue
		}
		t.config.Logger.Info("lease of a lost worker is given to others", "worker", e.worker, "slot", key.Slot)
		t.noteDeath(e)
		t.demands.assign(e, "")
	}
	t.workers.prune(now)
	t.suspects.prune(&t.demands)
	t.outages.refresh(&t.workers, now)
	t.changes.notifyAll()
}

// Demand replaces the demand of the named consumer. A new consumer is served after all others. Groups that no consumer
// demands any longer are dropped, and workers that play them are asked to stop.
func (t *Table) Demand(name string, leases []exchange.Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.demands.set(name, leases) {
		return
	}
	now := t.now()
	for _, name := range t.workers.alive(now) {
		t.demands.adopt(name, &t.workers, now)
	}
	t.changes.notify(&t.demands.tally)
}

// Withdraw ends the named consumer's demand.
func (t *Table) Withdraw(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.demands.remove(name)
	t.changes.notify(&t.demands.tally)
}

// Group returns a demanded group that is known, and its digest.
func (t *Table) Group(key rl.Key) (group rl.Group, digest rl.Digest, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.demands.entries[key]
	if e == nil || !e.isKnown() {
		return rl.Group{}, rl.Digest{}, false
	}
	return *e.group, e.digest, true
}

// Groups returns the groups of leases, in their order, and whether all of them are known.
func (t *Table) Groups(leases []exchange.Lease) ([]rl.Group, bool) {
	groups := make([]rl.Group, 0, len(leases))
	for _, lease := range leases {
		group, _, known := t.Group(lease.Key)
		if !known {
			return nil, false
		}
		groups = append(groups, group)
	}
	return groups, true
}

// Reject makes a tombstone of a group that cannot be trained on, here and at the workers that store it.
func (t *Table) Reject(key rl.Key, outcome rl.Outcome, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notices.reject(exchange.RejectedGroup{Key: key, Outcome: outcome, Reason: reason})
	if e := t.demands.entries[key]; e != nil && e.isKnown() {
		tombstone := e.group.Tombstone(outcome, reason)
		e.group, e.digest = &tombstone, tombstone.Digest()
		t.counters.Outcomes++
		t.rejections++
	}
	t.changes.notify(&t.demands.tally)
}

// SetPlay sets the settings that workers need to play. It is called before the table is opened.
func (t *Table) SetPlay(play []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notices.play = play
}

// SetSession names the rollout session that groups are played in.
func (t *Table) SetSession(session string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notices.session = session
	t.changes.notify(&t.demands.tally)
}

// Cover announces that the slots below the index are durable. The index falls when an older state had to be
// loaded.
func (t *Table) Cover(index int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notices.cover(index)
	t.workers.cover(index)
	t.config.Spending.Cover(index)
	t.changes.notify(&t.demands.tally)
}

// CoverEvaluation announces that the result of an evaluation is durable.
func (t *Table) CoverEvaluation(e exchange.Evaluation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notices.coverEvaluation(e)
	t.config.Spending.CoverEvaluation(e)
	t.changes.notify(&t.demands.tally)
}

// ErrPolicyMissing reports that the sampler weights of a needed policy no longer exist.
var ErrPolicyMissing = errors.New("the sampler weights of the policy are missing")

// IsMissing reports whether a worker did not find the sampler weights at a path. They are no longer leased.
func (t *Table) IsMissing(sampler string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.missing[sampler]
}

// Counters returns the outcomes of groups so far.
func (t *Table) Counters() Counters {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counters
}

// Problem returns the problem of the endpoint that workers reported lately. Its code is empty if there is none.
func (t *Table) Problem() *exchange.EndpointProblem {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	code := string(t.load.currentProblem(now))
	for _, name := range t.workers.alive(now) {
		reported := t.workers.byName[name].state.GetEndpointProblem()
		if reported.GetCode() != "" && (code == "" || code == reported.GetCode()) {
			return reported
		}
	}
	return &exchange.EndpointProblem{Code: code}
}

// Workers returns the names of the live workers, sorted.
func (t *Table) Workers() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.workers.alive(t.now()))
}
