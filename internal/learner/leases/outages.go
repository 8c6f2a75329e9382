// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"maps"
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// outages are the environments that no worker can play. Its owner's lock guards it.
type outages struct {
	// skippable has the environments of training; the value says whether they may be skipped.
	skippable map[string]bool
	// skipAfter is the time for which an environment has to be unavailable before its groups are dropped.
	skipAfter time.Duration
	current   map[string]outage
}

// outage is the time during which no worker can play an environment.
type outage struct {
	since   time.Time
	problem string
	skipped bool
}

// refresh finds the outages in the last reports of live workers. Only refresh decides whether an environment is
// skipped; workers then make tombstones, which the manifest of the step records.
func (o *outages) refresh(workers *workers, now time.Time) {
	problems := workers.commonProblems(now)
	known := o.current
	o.current = make(map[string]outage, len(problems))
	for name, problem := range problems {
		since := now
		if before, ok := known[name]; ok {
			since = before.since
		}
		o.current[name] = outage{since: since, problem: problem}
	}
	others := o.othersAvailable()
	for name, outage := range o.current {
		outage.skipped = o.skippable[name] && others && now.Sub(outage.since) >= o.skipAfter
		o.current[name] = outage
	}
}

// othersAvailable reports whether some environment of training is available.
func (o *outages) othersAvailable() bool {
	for name := range o.skippable {
		if _, out := o.current[name]; !out {
			return true
		}
	}
	return false
}

// excludes reports whether groups of an environment are not leased to the worker, which cannot play them. A skipped
// group is leased, so that a worker stores the tombstone.
func (o *outages) excludes(w *worker, environment string) bool {
	_, unavailable := w.state.GetUnavailable()[environment]
	return unavailable && !o.current[environment].skipped
}

// skipped lists the environments whose groups are dropped, sorted.
func (o *outages) skipped() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(o.current)) {
		if o.current[name].skipped {
			names = append(names, name)
		}
	}
	return names
}

// canMove reports whether the worker cannot play an environment that another live worker can play.
func (ws *workers) canMove(w *worker, environment string, now time.Time) bool {
	if _, unavailable := w.state.GetUnavailable()[environment]; !unavailable {
		return false
	}
	_, everywhere := ws.commonProblems(now)[environment]
	return !everywhere
}

// moveAway takes from a worker the leases that it cannot play and another worker can.
func (d *demands) moveAway(name string, ws *workers, now time.Time) {
	for _, e := range d.leasedTo(name) {
		if ws.canMove(ws.byName[name], e.lease.Environment, now) {
			d.assign(e, "")
		}
	}
}

// Unavailable lists the environments that no worker can play, sorted by name.
func (t *Table) Unavailable() []contract.UnavailableEnvironment {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	var list []contract.UnavailableEnvironment
	for _, name := range slices.Sorted(maps.Keys(t.outages.current)) {
		o := t.outages.current[name]
		list = append(list, contract.UnavailableEnvironment{Name: name, Problem: o.problem, Code: t.workers.codeOf(name, now),
			Skipped: o.skipped})
	}
	return list
}

// codeOf returns the finer code with which a live worker reports an unavailable environment, or "".
func (ws *workers) codeOf(environment string, now time.Time) problem.Code {
	for _, name := range ws.alive(now) {
		if code := ws.byName[name].state.GetUnavailableCodes()[environment]; code != "" {
			return problem.Code(code).Bounded()
		}
	}
	return ""
}
