// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoints

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// ErrVersionLost says that a version can never be sampled again.
var ErrVersionLost = errors.New("neither sampler weights nor state are left")

// Config selects the checkpoints that a Book keeps.
type Config struct {
	// Attempt is the attempt of the learner.
	Attempt   int32
	Retention Retention
	// Best is the number of best versions to keep, by the values of Metric.
	Best   int
	Metric string
}

// Book is the record of a run's checkpoints: the index, the chain of versions that led to the current one, and the
// best versions. It is safe for concurrent use.
type Book struct {
	config Config

	mu    sync.Mutex
	index Index
	// saved are the paths of the checkpoints that this process saved.
	saved map[string]bool
	chain map[int64]rl.Lineage
	best  []scored
}

// scored is a version with the value of the metric that the best are chosen by.
type scored struct {
	version rl.Version
	value   float64
}

// NewBook returns an empty book.
func NewBook(config Config) *Book {
	return &Book{config: config, index: Index{}, saved: map[string]bool{}, chain: map[int64]rl.Lineage{}}
}

// Replace replaces the index by a newly read one.
func (b *Book) Replace(index Index) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.index = index
}

// ReplaceSome replaces some entries of the index by newly read ones.
func (b *Book) ReplaceSome(isReplaced func(Entry) bool, index Index) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.index, func(_ string, e Entry) bool { return isReplaced(e) })
	maps.Copy(b.index, index)
}

// Add adds the entries of an index that was read without a listing, except entries with known paths.
func (b *Book) Add(index Index) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for path, e := range index {
		if _, known := b.index[path]; !known {
			b.index.Add(e)
		}
	}
}

// AddSaved adds a checkpoint that was saved just now.
func (b *Book) AddSaved(path string, name rl.CheckpointName, sampler bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.index.Add(Entry{Path: path, Name: name, Sampler: sampler, Listed: true, SaveTime: now.UTC().Format(time.RFC3339)})
	b.saved[path] = true
}

// HasSaved reports whether this process saved a checkpoint.
func (b *Book) HasSaved(path string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.saved[path]
}

// Entries lists all checkpoints, by their paths.
func (b *Book) Entries() []Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.SortedFunc(maps.Values(b.index), func(x, y Entry) int { return cmp.Compare(x.Path, y.Path) })
}

// States lists the states, the newest first.
func (b *Book) States() []Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.index.States()
}

// Find lists the states or sampler weights of a version, the newest first.
func (b *Book) Find(v rl.Version, sampler bool) []Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.index.Find(v, sampler)
}

// Begin makes the chain lead to a version that was loaded, as far as names record it, and forgets the best versions.
func (b *Book) Begin(at Position) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.chain = b.index.Chain(at.Version, at.Parent)
	b.best = nil
}

// Append adds the next version to the chain.
func (b *Book) Append(v rl.Version) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.chain[v.Step] = v.Lineage
}

// Parent returns the lineage of the version before v, if the name of a checkpoint records it.
func (b *Book) Parent(v rl.Version) (rl.Lineage, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.index {
		if e.Name.Version() == v {
			return e.Name.Parent, true
		}
	}
	return rl.Lineage{}, false
}

// Origin returns the lineage of the version 0 that an entry descends from, if names record it.
func (b *Book) Origin(e Entry) (lineage rl.Lineage, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	lineage, ok = b.index.Chain(e.Name.Version(), e.Name.Parent)[0]
	return lineage, ok
}

// Version returns the version of the chain at a step, if it is known.
func (b *Book) Version(step int64) (rl.Version, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	lineage, ok := b.chain[step]
	return rl.Version{Step: step, Lineage: lineage}, ok
}

// Score sets a version's value of the metric, and keeps it while it is among the best. If two versions have an equal
// value, the earlier is kept, so that the best changes only for a better value.
func (b *Book) Score(v rl.Version, value float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.best = slices.DeleteFunc(b.best, func(s scored) bool { return s.version == v })
	b.best = append(b.best, scored{version: v, value: value})
	slices.SortStableFunc(b.best, func(x, y scored) int {
		return cmp.Or(b.compare(y.value, x.value), cmp.Compare(x.version.Step, y.version.Step))
	})
	b.best = b.best[:min(len(b.best), b.config.Best)]
}

// compare orders values of the metric, the worse first.
func (b *Book) compare(x, y float64) int {
	if contract.LowerIsBetter(b.config.Metric) {
		x, y = y, x
	}
	return cmp.Compare(x, y)
}

// List returns the newest states of the chain up to a step, each with its sampler weights, and the best state.
func (b *Book) List(step int64) (newest []contract.Checkpoint, best *contract.Checkpoint) {
	const most = 16
	b.mu.Lock()
	defer b.mu.Unlock()
	samplers := map[rl.Version]string{}
	for _, e := range b.index.Samplers() {
		if samplers[e.Name.Version()] == "" {
			samplers[e.Name.Version()] = e.Path
		}
	}
	for _, e := range b.index.States() {
		if e.Name.Step > step || b.chain[e.Name.Step] != e.Name.Lineage || !e.Listed {
			continue
		}
		c := contract.Checkpoint{
			Step: e.Name.Step, State: e.Path, Sampler: samplers[e.Name.Version()], Lineage: e.Name.Lineage.Short(),
			Attempt: e.Name.Attempt, SaveTime: e.SaveTime, ExpirationTime: e.ExpirationTime,
		}
		if len(newest) < most {
			newest = append(newest, c)
		}
		if best == nil && len(b.best) > 0 && b.best[0].version == e.Name.Version() {
			value := b.best[0].value
			c.Metric, c.Value = b.config.Metric, &value
			best = &c
		}
	}
	return newest, best
}

// Retirements lists the checkpoints that are out of use once a step is saved, which is the last one if the run is
// complete. Outstanding versions wait for their evaluation.
func (b *Book) Retirements(step int64, complete bool, outstanding []rl.Version) []Retirement {
	b.mu.Lock()
	defer b.mu.Unlock()
	needed := map[rl.Version]bool{}
	for _, v := range outstanding {
		needed[v] = true
	}
	for _, s := range b.best {
		needed[s.version] = true
	}
	return b.config.Retention.Retire(b.index, Now{Step: step, Complete: complete, Attempt: b.config.Attempt,
		Chain: b.chain, Needed: needed})
}

// Retired records a retirement that the server accepted. Entries that expire soon or have expired are dropped.
func (b *Book) Retired(r Retirement, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.index, func(_ string, e Entry) bool { return e.Expires && e.IsExpired(now) })
	if r.TTLSeconds != b.config.Retention.TTLSeconds {
		delete(b.index, r.Path)
		return
	}
	e := b.index[r.Path]
	e.Expires = true
	e.ExpirationTime = now.Add(time.Duration(r.TTLSeconds) * time.Second).UTC().Format(time.RFC3339)
	b.index.Add(e)
}
