// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package checkpoints keeps a run's record of its checkpoints: which state is the newest, how versions descend
// from one another, which are the best and which may be retired. It reads this from the names of the checkpoints.
// It is pure: it calls no server and reads no clock.
package checkpoints

import (
	"maps"
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// Entry is a saved state, or the sampler weights of one.
type Entry struct {
	Path string
	Name rl.CheckpointName
	// Former says that a learner of the run that this run continues saved it. Everything that is not Former is newer.
	Former bool
	// Sampler distinguishes sampler weights from states.
	Sampler bool
	// Listed says that the server lists it; otherwise only a row or the run file names it.
	Listed bool
	// Expires says that a time to live is set.
	Expires bool
	// SaveTime and ExpirationTime are RFC 3339, or empty.
	SaveTime, ExpirationTime string
}

// IsExpired reports whether the checkpoint's time to live has ended.
func (e Entry) IsExpired(now time.Time) bool {
	if e.ExpirationTime == "" {
		return false
	}
	at, err := time.Parse(time.RFC3339, e.ExpirationTime)
	return err == nil && !now.Before(at)
}

// Index holds all known entries by path.
type Index map[string]Entry

// Add stores an entry, in place of an older one of its path.
func (x Index) Add(e Entry) { x[e.Path] = e }

// States lists the states, the newest first: the highest attempt, model and step, whatever their cursors say.
func (x Index) States() []Entry { return x.sorted(false) }

// Samplers lists the sampler weights, the newest first.
func (x Index) Samplers() []Entry { return x.sorted(true) }

func (x Index) sorted(sampler bool) []Entry {
	var entries []Entry
	for _, path := range slices.Sorted(maps.Keys(x)) {
		if x[path].Sampler == sampler {
			entries = append(entries, x[path])
		}
	}
	slices.SortStableFunc(entries, func(a, b Entry) int {
		switch {
		case a.Former && !b.Former:
			return 1
		case b.Former && !a.Former:
			return -1
		}
		return b.Name.Compare(a.Name)
	})
	return entries
}

// Chain follows the parents back from a version as far as names record them, and returns the lineage of each step.
func (x Index) Chain(from rl.Version, parent rl.Lineage) map[int64]rl.Lineage {
	parents := map[rl.Version]rl.Lineage{from: parent}
	for _, e := range x {
		parents[e.Name.Version()] = e.Name.Parent
	}
	chain := map[int64]rl.Lineage{}
	for v, ok := from, true; ok && v.Step >= 0; {
		chain[v.Step] = v.Lineage
		var above rl.Lineage
		above, ok = parents[v]
		v = rl.Version{Step: v.Step - 1, Lineage: above}
	}
	return chain
}

// Find lists the entries of a version, the newest first.
func (x Index) Find(v rl.Version, sampler bool) []Entry {
	var found []Entry
	for _, e := range x.sorted(sampler) {
		if e.Name.Version() == v {
			found = append(found, e)
		}
	}
	return found
}
