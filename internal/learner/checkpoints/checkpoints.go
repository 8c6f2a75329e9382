// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package checkpoints reads what the names of a run's checkpoints say: which state is the newest, how versions
// descend from one another, and what may be retired. It is pure: it calls no server and knows no clock.
package checkpoints

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// Entry is a saved state, or the sampler weights of one.
type Entry struct {
	Path string
	Name rl.CheckpointName
	// Sampler tells sampler weights from states.
	Sampler bool
	// Listed says that the server shows it; otherwise it was only heard of.
	Listed bool
	// Expires says that a time to live is set.
	Expires bool
	// SaveTime and ExpirationTime are RFC 3339, or empty.
	SaveTime, ExpirationTime string
}

// Ledger is all entries that are known, by path.
type Ledger map[string]Entry

// Add puts an entry in, in place of an older one of its path.
func (l Ledger) Add(e Entry) { l[e.Path] = e }

// States are the states, the newest first: the highest attempt, model and step, whatever their cursors say.
func (l Ledger) States() []Entry { return l.sorted(false) }

// Samplers are the sampler weights, the newest first.
func (l Ledger) Samplers() []Entry { return l.sorted(true) }

func (l Ledger) sorted(sampler bool) []Entry {
	var entries []Entry
	for _, path := range slices.Sorted(maps.Keys(l)) {
		if l[path].Sampler == sampler {
			entries = append(entries, l[path])
		}
	}
	slices.SortStableFunc(entries, func(a, b Entry) int { return b.Name.Compare(a.Name) })
	return entries
}

// Version names a version of the policy.
type Version struct {
	Step int64
	// Lineage is the version's, short.
	Lineage string
}

// VersionOf an entry.
func (e Entry) VersionOf() Version { return Version{Step: e.Name.Step, Lineage: e.Name.Lineage} }

// Chain follows the parents back from a version as far as names tell: the lineage by step.
func (l Ledger) Chain(from Version, parent string) map[int64]string {
	parents := map[Version]string{from: parent}
	for _, e := range l {
		parents[e.VersionOf()] = e.Name.Parent
	}
	chain := map[int64]string{}
	for v, ok := from, true; ok && v.Step >= 0; {
		chain[v.Step] = v.Lineage
		var above string
		above, ok = parents[v]
		v = Version{Step: v.Step - 1, Lineage: above}
	}
	return chain
}

// Find gives the newest entries of a version first.
func (l Ledger) Find(v Version, sampler bool) []Entry {
	var found []Entry
	for _, e := range l.sorted(sampler) {
		if e.VersionOf() == v {
			found = append(found, e)
		}
	}
	return found
}

// Retention says what is kept.
type Retention struct {
	// Lag widens the window in which states are needed to go on.
	Lag int64
	// EverySteps marks states that last: 0 for none. TTLSeconds is theirs once they are out of the window,
	// RollingTTLSeconds that of all others; 0 is for ever.
	EverySteps, TTLSeconds, RollingTTLSeconds int64
	// KeepLast bounds the lasting states; 0 keeps all.
	KeepLast int
}

// Now is where the run is.
type Now struct {
	Step int64
	// Attempt is one's own: nothing of a later one is touched.
	Attempt int32
	// Chain is the lineage of each version that led here.
	Chain map[int64]string
	// Needed are versions that are to be kept with their samplers: the best, and those whose evaluation
	// is outstanding.
	Needed map[Version]bool
}

// Retirement gives a checkpoint a time to live.
type Retirement struct {
	Path       string
	TTLSeconds int64
}

// Retire lists what is out of use and has no time to live yet, sorted by path.
func (r Retention) Retire(l Ledger, now Now) []Retirement {
	lasting := r.lasting(l, now)
	var retirements []Retirement
	for _, e := range l {
		if e.Expires || e.Name.Attempt > now.Attempt || r.isNeeded(e, now) {
			continue
		}
		ttl := r.RollingTTLSeconds
		if lasting[e.Path] {
			ttl = r.TTLSeconds
		}
		if ttl > 0 {
			retirements = append(retirements, Retirement{Path: e.Path, TTLSeconds: ttl})
		}
	}
	slices.SortFunc(retirements, func(a, b Retirement) int { return cmp.Compare(a.Path, b.Path) })
	return retirements
}

// isNeeded says whether an entry is in the window of the lag, with one to spare should the newest not load,
// or needed for its own sake. What is ahead of the run, or beside its chain, belongs to a branch that no
// one follows any more.
func (r Retention) isNeeded(e Entry, now Now) bool {
	if now.Needed[e.VersionOf()] {
		return true
	}
	if e.Name.Step < now.Step-r.Lag-1 || e.Name.Step > now.Step {
		return false
	}
	lineage, known := now.Chain[e.Name.Step]
	return !known || lineage == e.Name.Lineage
}

// lasting finds, by path, the newest copies of the states and samplers that are to last.
func (r Retention) lasting(l Ledger, now Now) map[string]bool {
	last := map[string]bool{}
	if r.EverySteps <= 0 {
		return last
	}
	newest := map[bool]map[Version]string{}
	for _, sampler := range []bool{false, true} {
		newest[sampler] = map[Version]string{}
		for _, e := range slices.Backward(l.sorted(sampler)) {
			newest[sampler][e.VersionOf()] = e.Path
		}
	}
	kept := 0
	for step := now.Step - now.Step%r.EverySteps; step > 0; step -= r.EverySteps {
		lineage, known := now.Chain[step]
		if !known || (r.KeepLast > 0 && kept >= r.KeepLast) {
			break
		}
		kept++
		for _, paths := range newest {
			last[paths[Version{Step: step, Lineage: lineage}]] = true
		}
	}
	return last
}
