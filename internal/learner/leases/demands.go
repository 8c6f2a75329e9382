// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// demands has the groups that consumers want, and the known state of each. Its owner's lock guards it.
type demands struct {
	// lists are in the order in which their consumers came.
	lists   []demand
	entries map[rl.Key]*entry
	tally   tally
	// leased is called when a worker is to play a group. It may be nil.
	leased func(worker string, key rl.Key)
	// looked counts the entries that were looked at for one worker.
	looked int64
}

// demand lists the groups that one consumer wants, in order. They are of one kind.
type demand struct {
	consumer string
	keys     []rl.Key
}

// entry is a group that is demanded.
type entry struct {
	lease exchange.Lease
	// group is nil until it is known. digest is its digest, and from is the worker that submitted it.
	group  *rl.Group
	digest rl.Digest
	from   string
	// worker has the lease since granted; it is empty while no worker has the lease. sampler is the path of the leased
	// sampler weights; empty if it is not known.
	worker  string
	granted time.Time
	sampler string
	// alone is the worker to which the group was last leased to be played alone; empty if the last lease was an ordinary
	// one.
	alone string
}

func newDemands() demands {
	return demands{entries: map[rl.Key]*entry{}, tally: newTally()}
}

// isKnown reports whether the group was submitted.
func (e *entry) isKnown() bool { return e.group != nil }

// isAlone reports whether the worker that has the lease plays the group alone.
func (e *entry) isAlone() bool { return e.alone != "" && e.alone == e.worker }

// isLeased reports whether the worker is to play the group.
func (e *entry) isLeased(worker string) bool { return e.worker == worker && !e.isKnown() }

// set replaces the demand of a consumer and reports whether it named other groups, or in another order.
func (d *demands) set(consumer string, leases []exchange.Lease) (changed bool) {
	keys := make([]rl.Key, 0, len(leases))
	for _, lease := range leases {
		keys = append(keys, lease.Key)
		d.demand(lease)
	}
	i := slices.IndexFunc(d.lists, func(l demand) bool { return l.consumer == consumer })
	if i < 0 {
		i = len(d.lists)
		d.lists = append(d.lists, demand{consumer: consumer})
	}
	if slices.Equal(d.lists[i].keys, keys) {
		return false
	}
	d.lists[i].keys = keys
	d.prune()
	return true
}

// remove ends the demand of a consumer.
func (d *demands) remove(consumer string) {
	d.lists = slices.DeleteFunc(d.lists, func(l demand) bool { return l.consumer == consumer })
	d.prune()
}

// prune drops the entries that no consumer demands.
func (d *demands) prune() {
	demanded := map[rl.Key]bool{}
	for e := range d.inOrder(rl.Train, rl.Evaluate) {
		demanded[e.lease.Key] = true
	}
	maps.DeleteFunc(d.entries, func(key rl.Key, e *entry) bool {
		if !demanded[key] {
			d.tally.add(e, -1)
		}
		return !demanded[key]
	})
}

// inOrder yields the entries of the kinds, the most urgent first.
func (d *demands) inOrder(kinds ...rl.Kind) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for _, list := range d.lists {
			if len(list.keys) == 0 || !slices.Contains(kinds, list.keys[0].Kind) {
				continue
			}
			for _, key := range list.keys {
				d.looked++
				if !yield(d.entries[key]) {
					return
				}
			}
		}
	}
}

// adopt leases to a live worker the groups that it already plays and that are leased to no worker.
func (d *demands) adopt(name string, workers *workers, now time.Time) {
	if !workers.isAlive(name, now) {
		return
	}
	w := workers.byName[name]
	for key := range w.playing {
		if e := d.entries[key]; e != nil && e.isLeased("") && !workers.canMove(w, e.lease.Environment, now) {
			d.assign(e, name)
			e.granted, e.sampler = now, ""
		}
	}
}

// A lease that a worker does not list is revoked this long after it was granted: the reply that carried it can no
// longer be on its way. The time is shorter if the worker says Hello, since it may then be another process of the
// same name.
const (
	renewPatience = 20 * time.Second
	helloPatience = time.Second
)

// reclaim revokes the leases that a worker was granted long ago and does not play: the reply that carried
// them did not reach it, or the process that received them has died.
func (d *demands) reclaim(name string, w *worker, now time.Time, patience time.Duration) {
	for key, e := range d.leasedTo(name) {
		if now.Sub(e.granted) < patience || w.playing[key] {
			continue
		}
		if _, stored := w.stored[key]; !stored {
			d.assign(e, "")
		}
	}
}

// wanted lists the groups that the worker stores and that are not known here, in order of demand.
func (d *demands) wanted(w *worker, now time.Time) []rl.Key {
	if !d.lacksStored(w) {
		return nil
	}
	var keys []rl.Key
	for e := range d.inOrder(rl.Train, rl.Evaluate) {
		if !e.isKnown() && w.request(e.lease.Key, now) {
			keys = append(keys, e.lease.Key)
		}
	}
	return keys
}

// lacksStored reports whether the worker stores a group that is demanded and not known here.
func (d *demands) lacksStored(w *worker) bool {
	for key := range w.stored {
		d.looked++
		if e := d.entries[key]; e != nil && !e.isKnown() {
			return true
		}
	}
	return false
}

// leasedTo returns the groups that a worker is to play.
func (d *demands) leasedTo(worker string) map[rl.Key]*entry {
	entries := maps.Clone(d.tally.entries[worker]) // the caller may give them to others
	d.looked += int64(len(entries))
	return entries
}

// revoked lists the groups that the worker plays without a lease.
func (d *demands) revoked(name string, w *worker) []rl.Key {
	var keys []rl.Key
	for key := range w.playing {
		if e := d.entries[key]; e == nil || !e.isLeased(name) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, rl.Key.Compare)
	return keys
}

// hasPolicy reports whether a training group of a policy is demanded.
func (d *demands) hasPolicy(lineage rl.Lineage) bool {
	for key := range d.entries {
		if key.Kind == rl.Train && key.Lineage == lineage {
			return true
		}
	}
	return false
}
