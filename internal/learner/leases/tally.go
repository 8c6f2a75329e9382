// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// tally counts the unknown groups: the groups that no worker has, and the episodes of the groups that a worker has.
type tally struct {
	free     int
	leased   int
	byWorker map[string]int
	// entries are the groups that each worker has.
	entries map[string]map[rl.Key]*entry
}

func newTally() tally {
	return tally{byWorker: map[string]int{}, entries: map[string]map[rl.Key]*entry{}}
}

// add counts an entry, sign times.
func (t *tally) add(e *entry, sign int) {
	switch {
	case e.isKnown():
	case e.worker == "":
		t.free += sign
	default:
		episodes := sign * e.lease.GroupSize
		t.leased += episodes
		if t.byWorker[e.worker] += episodes; t.byWorker[e.worker] == 0 {
			delete(t.byWorker, e.worker)
		}
		t.index(e, sign > 0)
	}
}

// index adds an entry to the entries of its worker, or removes it.
func (t *tally) index(e *entry, has bool) {
	if has && t.entries[e.worker] == nil {
		t.entries[e.worker] = map[rl.Key]*entry{}
	}
	if has {
		t.entries[e.worker][e.lease.Key] = e
		return
	}
	if delete(t.entries[e.worker], e.lease.Key); len(t.entries[e.worker]) == 0 {
		delete(t.entries, e.worker)
	}
}

// assign assigns the lease of a group to a worker; an empty name revokes the lease.
func (d *demands) assign(e *entry, worker string) {
	if worker != "" && d.leased != nil {
		d.leased(worker, e.lease.Key)
	}
	d.tally.add(e, -1)
	e.worker = worker
	d.tally.add(e, 1)
}

// complete records the group of an entry, which is not known yet.
func (d *demands) complete(e *entry, group *rl.Group) {
	d.tally.add(e, -1)
	e.group = group
}

// demand adds a lease to the entries, or replaces the lease of its entry.
func (d *demands) demand(lease exchange.Lease) {
	e := d.entries[lease.Key]
	if e == nil {
		e = &entry{}
		d.entries[lease.Key] = e
	} else {
		d.tally.add(e, -1)
	}
	e.lease = lease
	d.tally.add(e, 1)
}
