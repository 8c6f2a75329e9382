// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package leases says who plays what: it hands out leases in slot order, takes groups in, and knows what
// each worker holds and plays. It is the learner's side of the exchange, and knows neither Tinker nor
// optimizer steps nor files.
//
// What is to be played is a list of demands, the most urgent first; each is a list of leases in order. A
// group that is demanded and not known yet is, in this order: asked of a live worker that holds it, waited
// for from the worker that plays it, or leased to whoever has room. So a group is bought again only when
// nobody who lives has it. Nothing is leased before the workers that a former learner left behind had time
// to say what they have.
//
// What is accepted depends on keys alone, never on who was first among different groups of one key: groups
// are functions of their key, and a second one is a duplicate.
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

// Config of a Board.
type Config struct {
	// Play is what workers must know, JSON of runspec.Play.
	Play []byte
	// Concurrency is how many episodes may be under way.
	Concurrency int
	// Silence is how long a worker may say nothing before others are given its leases.
	Silence time.Duration
	// Barrier is how long nothing is leased once Open was called, so that workers can say what they have.
	Barrier time.Duration
	Logger  *slog.Logger
	Now     func() time.Time
}

// Table is an exchange.Handler. Its methods may be called concurrently.
type Table struct {
	config Config
	opened chan struct{}
	closed chan struct{}

	mu      sync.Mutex
	changed chan struct{}
	// leaseAfter is when the barrier falls; zero before Open.
	leaseAfter time.Time
	// expected are workers of a former learner that have not said Hello.
	expected  map[string]bool
	demands   []demand
	entries   map[rl.Key]*entry
	workers   map[string]*worker
	credits   credits
	session   string
	covered   int64
	evaluated []exchange.Evaluation
	condemned []exchange.RejectedGroup
	// gone are the policies whose sampler weights a worker did not find.
	gone     map[Policy]bool
	counters Counters
	// trouble is what workers met at the endpoint, and troubled when.
	trouble  string
	troubled time.Time
}

var _ exchange.Handler = (*Table)(nil)

// Counters of what happened to groups since the board was made.
type Counters struct {
	PromptTokens, SampledTokens, BoughtTwiceTokens int64
	Accepted, Duplicate, Closed, Stale, Invalid    int64
}

// demand is what one consumer wants, in order.
type demand struct {
	name string
	keys []rl.Key
}

// entry is a group that is demanded.
type entry struct {
	lease exchange.Lease
	// group is nil until it is known; digest is the group's, and from the worker that submitted it.
	group  *rl.Group
	digest rl.Digest
	from   string
	// player is the worker that has the lease; granted is since when, again is set once it was given twice.
	player  string
	granted time.Time
	again   bool
}

// NewTable makes a board that demands nothing.
func NewTable(config Config) *Table {
	return &Table{
		config: config, opened: make(chan struct{}), closed: make(chan struct{}), changed: make(chan struct{}),
		gone: map[Policy]bool{}, entries: map[rl.Key]*entry{}, workers: map[string]*worker{},
		credits: newCredits(config.Concurrency),
	}
}

// Expect names the workers that a former learner had: once all of them have said Hello the barrier falls
// early. It is called before Open.
func (b *Table) Expect(names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = map[string]bool{}
	for _, name := range names {
		b.expected[name] = true
	}
}

// Open lets workers in: from now on Hello is answered, and after the barrier leases are handed out. Further
// calls do nothing.
func (b *Table) Open() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.leaseAfter.IsZero() {
		return
	}
	b.leaseAfter = b.config.Now().Add(b.config.Barrier)
	close(b.opened)
	time.AfterFunc(b.config.Barrier, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.wake()
	})
}

// Close ends the calls of workers that wait for the board to open. It is called once.
func (b *Table) Close() { close(b.closed) }

// Changed is closed when something changed that a waiting caller may want to look at.
func (b *Table) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// wake tells all who wait. The lock is held.
func (b *Table) wake() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// Demand replaces what the named consumer wants; a new name stands behind all others. Groups that nobody
// demands any more are forgotten, and who plays them is told to stop.
func (b *Table) Demand(name string, leases []exchange.Lease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	keys := make([]rl.Key, 0, len(leases))
	for _, lease := range leases {
		keys = append(keys, lease.Key)
		if e := b.entries[lease.Key]; e != nil {
			e.lease = lease
			continue
		}
		b.entries[lease.Key] = &entry{lease: lease}
	}
	i := slices.IndexFunc(b.demands, func(d demand) bool { return d.name == name })
	if i < 0 {
		i = len(b.demands)
		b.demands = append(b.demands, demand{name: name})
	}
	if slices.Equal(b.demands[i].keys, keys) {
		return
	}
	b.demands[i].keys = keys
	b.forget()
	b.adopt()
	b.wake()
}

// Withdraw ends the named demand.
func (b *Table) Withdraw(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.demands = slices.DeleteFunc(b.demands, func(d demand) bool { return d.name == name })
	b.forget()
	b.wake()
}

// forget drops entries that no demand names.
func (b *Table) forget() {
	named := map[rl.Key]bool{}
	for _, d := range b.demands {
		for _, key := range d.keys {
			named[key] = true
		}
	}
	maps.DeleteFunc(b.entries, func(key rl.Key, _ *entry) bool { return !named[key] })
}

// adopt gives entries without a player to live workers that play them already.
func (b *Table) adopt() {
	now := b.config.Now()
	for _, name := range slices.Sorted(maps.Keys(b.workers)) {
		w := b.workers[name]
		if !b.isAlive(w, now) {
			continue
		}
		for key := range w.playing {
			if e := b.entries[key]; e != nil && e.group == nil && e.player == "" {
				e.player, e.granted = name, now
			}
		}
	}
}

// Group gives a demanded group that is known, and its digest.
func (b *Table) Group(key rl.Key) (group rl.Group, digest rl.Digest, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[key]
	if e == nil || e.group == nil {
		return rl.Group{}, rl.Digest{}, false
	}
	return *e.group, e.digest, true
}

// SetPlay says what workers must know to play, before the board is opened.
func (b *Table) SetPlay(play []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.config.Play = play
}

// Cover says which slots are durable. It may go back when an older state had to be loaded.
func (b *Table) Cover(index int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.covered = index
	b.condemned = slices.DeleteFunc(b.condemned, func(c exchange.RejectedGroup) bool { return c.Key.Slot < index })
	for _, w := range b.workers {
		maps.DeleteFunc(w.held, func(key rl.Key, _ exchange.StoredGroup) bool { return key.Kind == rl.Train && key.Slot < index })
	}
	b.wake()
}

// CoverEvaluation says that the result of an evaluation is durable.
func (b *Table) CoverEvaluation(e exchange.Evaluation) {
	const remembered = 64
	b.mu.Lock()
	defer b.mu.Unlock()
	b.evaluated = append(b.evaluated, e)
	b.evaluated = b.evaluated[max(0, len(b.evaluated)-remembered):]
	b.wake()
}

// Reject makes a tombstone of a group that cannot be trained on, here and at who holds it.
func (b *Table) Reject(key rl.Key, outcome rl.Outcome, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.condemned = append(b.condemned, exchange.RejectedGroup{Key: key, Outcome: outcome, Reason: reason})
	if e := b.entries[key]; e != nil && e.group != nil {
		tombstone := e.group.Tombstone(outcome, reason)
		e.group, e.digest = &tombstone, tombstone.Digest()
	}
	b.wake()
}

// SetSession names the rollout session that leases are played in.
func (b *Table) SetSession(session string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.session = session
	b.wake()
}

// Session is the rollout session that leases are played in.
func (b *Table) Session() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.session
}

// Policy is what samples groups: a version of the run's policy, for training or for one evaluation.
type Policy struct {
	Lineage    rl.Lineage
	Evaluation string
}

// TakeMissing says, once, that a worker found the sampler weights of a policy gone.
func (b *Table) TakeMissing(policy Policy) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	gone := b.gone[policy]
	delete(b.gone, policy)
	return gone
}

// ErrPolicyMissing says that the sampler weights of a policy that is needed are gone.
var ErrPolicyMissing = errors.New("the sampler weights of the policy are gone")

// Groups gives the groups of leases, in their order, and whether all of them are known.
func (b *Table) Groups(leases []exchange.Lease) ([]rl.Group, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	groups := make([]rl.Group, 0, len(leases))
	for _, lease := range leases {
		e := b.entries[lease.Key]
		if e == nil || e.group == nil {
			return nil, false
		}
		groups = append(groups, *e.group)
	}
	return groups, true
}

// Counters of what happened so far.
func (b *Table) Counters() Counters {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counters
}

// Problem names what workers lately met at the endpoint, as heartbeat.Reply.Upstream spells it; empty for
// nothing.
func (b *Table) Problem() string {
	const lately = 10 * time.Second
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.config.Now().Sub(b.troubled) > lately {
		return ""
	}
	return b.trouble
}
