// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoints

import (
	"cmp"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// Retention says which checkpoints are kept, and for how long.
type Retention struct {
	// Lag widens the window of steps whose states are needed to resume.
	Lag int64
	// EverySteps selects the lasting states; 0 selects none. TTLSeconds is their time to live once they are out of the
	// window. RollingTTLSeconds is the time to live of all other states. 0 keeps states forever.
	EverySteps, TTLSeconds, RollingTTLSeconds int64
	// KeepLast bounds the lasting states; 0 keeps all.
	KeepLast int
}

// Now describes the run at the moment of a retirement.
type Now struct {
	Step int64
	// Complete says that no step follows: nothing is kept for a resume but the last version.
	Complete bool
	// Attempt is the attempt of the learner: nothing of a later attempt is retired.
	Attempt int32
	// Chain is the lineage of each version that led here.
	Chain map[int64]rl.Lineage
	// Needed are versions that are kept with their samplers: the best ones, and the ones that wait for their evaluation.
	Needed map[rl.Version]bool
}

// Retirement sets the time to live of a checkpoint.
type Retirement struct {
	Path       string
	TTLSeconds int64
}

// Retire lists the checkpoints that are out of use and have no time to live yet, sorted by path.
func (r Retention) Retire(x Index, now Now) []Retirement {
	lasting, surplus := r.lasting(x, now), surplus(x)
	var retirements []Retirement
	for _, e := range x {
		needed := r.isNeeded(e, now) && !surplus[e.Path]
		if e.Expires || !e.Former && e.Name.Attempt > now.Attempt || needed {
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

// surplus returns the paths of the copies of a version that are older than two others of their kind: models that were
// opened without making a step have left them.
func surplus(x Index) map[string]bool {
	older := map[string]bool{}
	for _, sampler := range []bool{false, true} {
		copies := map[rl.Version]int{}
		for _, e := range x.sorted(sampler) {
			if copies[e.Name.Version()]++; copies[e.Name.Version()] > 2 {
				older[e.Path] = true
			}
		}
	}
	return older
}

// isNeeded reports whether the version of an entry is needed, or its step lies in the window of the lag. The window
// has one more step, in case the newest state cannot be loaded. In a complete run it has the last step alone. An
// entry ahead of the run, or beside its chain, belongs to an abandoned branch.
func (r Retention) isNeeded(e Entry, now Now) bool {
	if now.Needed[e.Name.Version()] {
		return true
	}
	first := now.Step - r.Lag - 1
	if now.Complete {
		first = now.Step
	}
	if e.Name.Step < first || e.Name.Step > now.Step {
		return false
	}
	lineage, known := now.Chain[e.Name.Step]
	return !known || lineage == e.Name.Lineage
}

// lasting returns the paths of the newest copies of the lasting states and samplers.
func (r Retention) lasting(x Index, now Now) map[string]bool {
	last := map[string]bool{}
	if r.EverySteps <= 0 {
		return last
	}
	newest := map[bool]map[rl.Version]string{}
	for _, sampler := range []bool{false, true} {
		newest[sampler] = map[rl.Version]string{}
		for _, e := range slices.Backward(x.sorted(sampler)) {
			newest[sampler][e.Name.Version()] = e.Path
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
			last[paths[rl.Version{Step: step, Lineage: lineage}]] = true
		}
	}
	return last
}
