// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

const (
	// suspectDeaths is the number of workers that die while they play a group before the group is a suspect. One death
	// says little: most deaths have nothing to do with the group, and a suspect is played slowly.
	suspectDeaths = 2
	// faultyDeaths is the number of workers that die while one member of a suspect is alone in play before that member is
	// a fault.
	faultyDeaths = 2
)

// suspects are the groups that may have ended their workers. Seeds are the same at each worker, so that a reply that
// ends one process ends the next one too. A worker plays a suspect alone: no other group, and one member after the
// other, each with a permit. The owner's lock guards it.
type suspects struct {
	logger *slog.Logger
	byKey  map[rl.Key]*suspect
}

// suspect is a group that was in play when a worker died.
type suspect struct {
	// deaths are the processes that died while they played the group with others beside it.
	deaths map[process]bool
	// alone are the processes that died while one member was alone in play, by the member.
	alone map[int]map[process]bool
	// permitted is the member that the worker may play now, if the group is leased alone. The members before it are done.
	permitted int
}

// process is a process of a worker.
type process struct{ worker, name string }

func newSuspects(logger *slog.Logger) suspects {
	return suspects{logger: logger, byKey: map[rl.Key]*suspect{}}
}

// isSuspect reports whether a group is to be played alone.
func (s *suspects) isSuspect(key rl.Key) bool {
	known := s.byKey[key]
	return known != nil && (len(known.deaths) >= suspectDeaths || len(known.alone) > 0)
}

// faulty lists the members of a group that are faults, in the order of their indexes.
func (s *suspects) faulty(key rl.Key) []int {
	known := s.byKey[key]
	if known == nil {
		return nil
	}
	var members []int
	for _, member := range slices.Sorted(maps.Keys(known.alone)) {
		if len(known.alone[member]) >= faultyDeaths {
			members = append(members, member)
		}
	}
	return members
}

// died notes the death of a process that had the lease of a group.
func (s *suspects) died(dead process, e *entry) {
	key := e.lease.Key
	known := s.byKey[key]
	if known == nil {
		known = &suspect{deaths: map[process]bool{}, alone: map[int]map[process]bool{}}
		s.byKey[key] = known
	}
	if !e.isAlone() {
		known.deaths[dead] = true
		return
	}
	if known.permitted >= e.lease.GroupSize {
		return // All members were done.
	}
	if known.alone[known.permitted] == nil {
		known.alone[known.permitted] = map[process]bool{}
	}
	known.alone[known.permitted][dead] = true
	log := s.logger.With("worker", dead.worker, "slot", key.Slot, "kind", key.Kind.String(), "member", known.permitted)
	if slices.Contains(s.faulty(key), known.permitted) {
		log.Error("member is left out: workers died while it alone was in play")
	} else {
		log.Warn("worker died while one member alone was in play")
	}
}

// lives reverts what died noted about a process: the process was heard from again, so it was only cut off.
func (s *suspects) lives(alive process) {
	for key, known := range s.byKey {
		delete(known.deaths, alive)
		for member, dead := range known.alone {
			if delete(dead, alive); len(dead) == 0 {
				delete(known.alone, member)
			}
		}
		if len(known.deaths) == 0 && len(known.alone) == 0 {
			delete(s.byKey, key)
		}
	}
}

// prune forgets the groups that are known, or that are no longer demanded.
func (s *suspects) prune(d *demands) {
	maps.DeleteFunc(s.byKey, func(key rl.Key, _ *suspect) bool {
		e := d.entries[key]
		return e == nil || e.isKnown()
	})
}

// leaseOf returns the lease of an entry as its worker gets it.
func (s *suspects) leaseOf(e *entry) exchange.Lease {
	lease := e.lease
	if e.isAlone() {
		lease.Alone, lease.Faulty = true, s.faulty(lease.Key)
	}
	return lease
}

// begin notes that a suspect is leased to a worker alone.
func (s *suspects) begin(e *entry, name string) {
	e.alone = name
	s.byKey[e.lease.Key].permitted = 0
}

// progress takes over how many members of a group are done: the next one may be played.
func (s *suspects) progress(key rl.Key, done int) {
	if known := s.byKey[key]; known != nil {
		known.permitted = max(known.permitted, done)
	}
}

// permits lists the member that a worker may play now of each group that it was leased alone. If a group is no longer
// a suspect, the worker may play all its members.
func (s *suspects) permits(name string, w *worker, d *demands) []exchange.Permit {
	var permits []exchange.Permit
	for key := range w.playing {
		e := d.entries[key]
		if e == nil || !e.isAlone() || !e.isLeased(name) {
			continue
		}
		member := e.lease.GroupSize
		if known := s.byKey[key]; known != nil {
			member = known.permitted
		}
		permits = append(permits, exchange.Permit{Key: key, Member: member})
	}
	slices.SortFunc(permits, func(a, b exchange.Permit) int { return a.Key.Compare(b.Key) })
	return permits
}

// host returns the worker that plays suspects: the first live worker that is able to. It is empty if there is none;
// suspects are then played like any other group.
func (ws *workers) host(now time.Time) string {
	for _, name := range ws.alive(now) {
		if ws.byName[name].process != "" && ws.byName[name].disconnected.IsZero() {
			return name
		}
	}
	return ""
}

// isAlone reports whether a worker plays a group that it was leased alone.
func (d *demands) isAlone(name string) bool {
	for _, e := range d.tally.entries[name] {
		if e.isAlone() {
			return true
		}
	}
	return false
}

// noteDeath notes the death of a lost worker before its lease is given to others, if the worker's connection broke:
// the connection of a process that ends is closed. A worker that is only silent may be alive, or the learner itself
// was stopped for a while.
func (t *Table) noteDeath(e *entry) {
	if w := t.workers.byName[e.worker]; w != nil && !w.disconnected.IsZero() {
		t.suspects.died(process{e.worker, w.process}, e)
	}
}

// bury notes the death of a process for each of its leases. The leases are given to others afterwards.
func (t *Table) bury(dead process) {
	for _, e := range t.demands.entries {
		if e.isLeased(dead.worker) {
			t.suspects.died(dead, e)
		}
	}
}

// meet records the process that says Hello. If the worker had another process before, that process has died.
func (t *Table) meet(name string, w *worker, named string) {
	if w.process != "" && w.process != named {
		t.bury(process{name, w.process})
		clear(w.granted)
		for key, e := range t.demands.entries {
			if e.isLeased(name) {
				t.demands.assign(e, "")
				delete(w.playing, key)
			}
		}
	}
	w.process = named
	t.suspects.lives(process{name, named})
}

// suspectFor returns the suspect that a worker is to play alone, and whether it may play other groups. The worker that
// plays suspects first ends its other groups.
func (h *Handler) suspectFor(name string, w *worker, now time.Time) (alone *entry, others bool) {
	t := h.table
	if t.demands.isAlone(name) {
		return nil, false
	}
	if len(t.suspects.byKey) == 0 || t.workers.host(now) != name {
		return nil, true
	}
	for _, kind := range []rl.Kind{rl.Train, rl.Evaluate} {
		for e := range h.unplayed(kind, w, now) {
			if !t.suspects.isSuspect(e.lease.Key) {
				continue
			}
			if t.demands.tally.byWorker[name] > 0 {
				return nil, false
			}
			return e, false
		}
	}
	return nil, true
}

// describe describes the groups that are played alone, for people. It returns "" if there are none.
func (s *suspects) describe() string {
	var slots, faulty []string
	for _, key := range slices.SortedFunc(maps.Keys(s.byKey), rl.Key.Compare) {
		if s.isSuspect(key) {
			slots = append(slots, strconv.FormatInt(key.Slot, 10))
		}
		for _, member := range s.faulty(key) {
			faulty = append(faulty, fmt.Sprintf("%d of slot %d", member, key.Slot))
		}
	}
	if len(slots) == 0 {
		return ""
	}
	text := "workers died while they played slots " + strings.Join(slots, ", ") + ", which are played one member at a time"
	if len(faulty) > 0 {
		text += "; left out, since workers died while it alone was played: member " + strings.Join(faulty, ", member ")
	}
	return text
}
