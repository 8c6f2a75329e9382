// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"maps"
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// worker is what is known of one worker.
type worker struct {
	seen time.Time
	// parted is when its connection broke, zero while it is there. A worker that lives dials again soon.
	parted time.Time
	// held and playing are what it said that it has, and what it was given since.
	held    map[rl.Key]exchange.StoredGroup
	playing map[rl.Key]bool
	// asked is since when a held group is waited for.
	asked map[rl.Key]time.Time
}

// redial is how long a worker whose connection broke has to come back: it tries after 0.1 s, and then
// every 2 s at the latest. Who comes later finds its leases with others.
const redial = 5 * time.Second

// meet gives the worker's record and notes that it lives.
func (b *Table) meet(name string) *worker {
	w := b.workers[name]
	if w == nil {
		w = &worker{held: map[rl.Key]exchange.StoredGroup{}, playing: map[rl.Key]bool{}, asked: map[rl.Key]time.Time{}}
		b.workers[name] = w
	}
	w.seen = b.config.Now()
	return w
}

func (b *Table) isAlive(w *worker, now time.Time) bool {
	if w == nil || now.Sub(w.seen) > b.config.Silence {
		return false
	}
	return w.parted.IsZero() || now.Sub(w.parted) <= redial
}

// Disconnected notes that a worker's connection broke. A process that was killed closes its connections, so that
// its leases need not wait until it has been silent for long.
func (b *Table) Disconnected(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w := b.workers[name]; w != nil {
		w.parted = b.config.Now()
	}
}

// Alive is the number of workers that were heard of lately.
func (b *Table) Alive() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.alive(b.config.Now())
}

func (b *Table) alive(now time.Time) int {
	n := 0
	for _, w := range b.workers {
		if b.isAlive(w, now) {
			n++
		}
	}
	return n
}

// Tick takes leases from workers that are gone and lets credits grow. It is to be called about once a
// second.
func (b *Table) Tick() {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.config.Now()
	b.credits.grow(now)
	for key, e := range b.entries {
		if e.group != nil || e.player == "" || b.isAlive(b.workers[e.player], now) {
			continue
		}
		b.config.Logger.Info("lease of a worker that is gone is given to others", "worker", e.player, "slot", key.Slot)
		e.player, e.again = "", true
	}
	b.wake()
}

// lost takes back leases that the worker was given but, so much later, says nothing of: the answer that
// granted them did not reach it.
func (b *Table) lost(name string, w *worker, now time.Time) {
	const patience = 20 * time.Second
	for key, e := range b.entries {
		if e.player != name || e.group != nil || now.Sub(e.granted) < patience || w.playing[key] {
			continue
		}
		if _, held := w.held[key]; !held {
			e.player = ""
		}
	}
}

// isHeld says whether a live worker has the group ready.
func (b *Table) isHeld(key rl.Key, now time.Time) bool {
	for _, w := range b.workers {
		if _, ok := w.held[key]; ok && b.isAlive(w, now) {
			return true
		}
	}
	return false
}

// wanted lists what the worker holds and the board lacks, in order of demand. A worker that does not give
// what it said it holds is not believed for ever.
func (b *Table) wanted(w *worker) []rl.Key {
	const patience = time.Minute
	now := b.config.Now()
	var keys []rl.Key
	b.eachDemanded(func(key rl.Key, e *entry) bool {
		if _, held := w.held[key]; !held || e.group != nil {
			return true
		}
		since, asked := w.asked[key]
		switch {
		case !asked:
			w.asked[key] = now
		case now.Sub(since) > patience:
			delete(w.held, key)
			return true
		}
		keys = append(keys, key)
		return true
	})
	return keys
}

// eachDemanded visits entries in order of demand until visit returns false.
func (b *Table) eachDemanded(visit func(rl.Key, *entry) bool) {
	for _, d := range b.demands {
		for _, key := range d.keys {
			if !visit(key, b.entries[key]) {
				return
			}
		}
	}
}

// revoked lists what the worker plays without a lease.
func (b *Table) revoked(name string, w *worker) []rl.Key {
	var keys []rl.Key
	for key := range w.playing {
		if e := b.entries[key]; e == nil || e.group != nil || e.player != name {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

// directive says how things are for one worker.
func (b *Table) directive(name string, w *worker) exchange.Directive {
	share := b.credits.total() / max(1, b.alive(b.config.Now()))
	return exchange.Directive{
		Revoked: b.revoked(name, w), Credits: max(1, share), CoveredIndex: b.covered,
		CoveredEvaluations: slices.Clone(b.evaluated), Session: b.session, Wanted: b.wanted(w),
		Rejected: b.condemnedOf(w),
	}
}

func (b *Table) condemnedOf(w *worker) []exchange.RejectedGroup {
	var found []exchange.RejectedGroup
	for _, c := range b.condemned {
		if held, ok := w.held[c.Key]; ok && held.Outcome != c.Outcome {
			found = append(found, c)
		}
	}
	return found
}

// Workers are the names of those that were heard of lately.
func (b *Table) Workers() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	names, now := []string{}, b.config.Now()
	for _, name := range slices.Sorted(maps.Keys(b.workers)) {
		if b.isAlive(b.workers[name], now) {
			names = append(names, name)
		}
	}
	return names
}
