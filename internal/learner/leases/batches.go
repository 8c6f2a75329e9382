// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// trainConsumer names the consumer of training groups; it is the first one.
const trainConsumer = "train"

// BatchConfig describes the batches of a run.
type BatchConfig struct {
	Rules  rl.Rules
	Stream *rl.Stream
	// Seed is the run's.
	Seed uint64
	// Groups is the shape of a group by environment.
	Groups map[string]GroupShape
	// Transcripts is the number of first slots of a batch whose conversations are recorded for people.
	Transcripts int64
}

// GroupShape is the number of episodes of a group, and the number of them that have to be usable.
type GroupShape struct{ Size, MinMembers int }

// Version is a version of the policy that can be sampled.
type Version struct {
	Step    int64
	Lineage rl.Lineage
	Sampler string
}

// SamplingSession returns the number of the sampling session of the version's weights, in 48 bits. The number depends
// on the lineage, so that samples of one policy are never taken for another's. It also depends on the path, because
// the number of weights that a former learner saved cannot stand for weights that were saved again. The evaluation is
// the evaluation of rl.Key.
func (v Version) SamplingSession(kind rl.Kind, evaluation string) int64 {
	const mask = 1<<48 - 1
	path := sha256.Sum256([]byte(v.Sampler))
	return rl.SamplingSession(kind, v.Lineage, evaluation) ^ int64(binary.LittleEndian.Uint64(path[:])&mask)
}

// BatchSource demands the groups of the batch that is trained next and, with a lag, of the batches after it as far as
// they are certain, and returns the batches once their groups are known.
type BatchSource struct {
	table  *Table
	config BatchConfig

	mu       sync.Mutex
	at       rl.Position
	versions map[int64]Version
	// newest and oldest are steps of versions.
	newest, oldest int64
	// laidOut are the batches of the last layout, and outcomes is the table's count of outcomes at that time. demanded
	// are the ranges that were demanded last. laidOut and demanded are nil after a change of the fields above.
	laidOut  []rl.Batch
	outcomes int64
	demanded []slotRange
	// slots are the demanded slots, in order, and rejections the table's count when their outcomes were looked up.
	slots      []demandedSlot
	rejections int64
}

// demandedSlot has the known state of a demanded slot. It is looked up for each outcome that arrives.
type demandedSlot struct {
	version int64
	entry   *entry
	known   bool
	outcome rl.Outcome
}

// slotRange is the range of slots that a batch demands.
type slotRange struct{ first, next, version int64 }

// NewBatchSource makes a source that demands nothing until Reset.
func NewBatchSource(table *Table, config BatchConfig) *BatchSource {
	table.Demand(trainConsumer, nil)
	return &BatchSource{table: table, config: config, versions: map[int64]Version{}}
}

// Reset begins at a position. versions are the versions of a new model that can be sampled there: the oldest first,
// and without gaps up to the position's own version.
func (s *BatchSource) Reset(at rl.Position, versions []Version) {
	s.table.BeginModel()
	s.mu.Lock()
	s.at = at
	clear(s.versions)
	for _, v := range versions {
		s.versions[v.Step] = v
	}
	s.oldest, s.newest = versions[0].Step, versions[len(versions)-1].Step
	s.forget()
	s.mu.Unlock()
	s.refresh()
}

// Announce adds a version that can be sampled from now on.
func (s *BatchSource) Announce(v Version) {
	s.mu.Lock()
	s.versions[v.Step], s.newest = v, v.Step
	s.forget()
	s.mu.Unlock()
	s.refresh()
}

// Advance moves to the position after the current batch.
func (s *BatchSource) Advance(to rl.Position) {
	s.mu.Lock()
	s.at = to
	for step := range s.versions {
		if step < s.rules().VersionOf(to.Step) {
			delete(s.versions, step)
		}
	}
	s.forget()
	s.mu.Unlock()
	s.refresh()
}

// forget discards the layout and the demand, so that both are made again. The lock is held.
func (s *BatchSource) forget() { s.laidOut, s.demanded, s.slots = nil, nil, nil }

// rules returns the run's rules with the oldest version that can still be sampled.
func (s *BatchSource) rules() rl.Rules {
	rules := s.config.Rules
	rules.OldestVersion = s.oldest
	return rules
}

// Run refreshes the demand whenever the table changes, until ctx ends.
func (s *BatchSource) Run(ctx context.Context) {
	for {
		changed := s.table.Changed()
		s.refresh()
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// refresh demands the slots of the batches that can be sampled. Groups that are known stay in the demand, so
// that the table keeps them.
func (s *BatchSource) refresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.versions) == 0 {
		return
	}
	batches := s.batches()
	ranges := make([]slotRange, 0, len(batches))
	for _, batch := range batches {
		ranges = append(ranges, slotRange{batch.First, batch.Next, batch.Version})
	}
	if s.demanded != nil && slices.Equal(s.demanded, ranges) {
		return
	}
	var leases []exchange.Lease
	for _, r := range ranges {
		version := s.versions[r.version]
		session := version.SamplingSession(rl.Train, "")
		for slot := r.first; slot < r.next; slot++ {
			lease := s.lease(slot, version, session)
			lease.Transcript = slot-r.first < s.config.Transcripts
			leases = append(leases, lease)
		}
	}
	s.table.Demand(trainConsumer, leases)
	s.demanded = ranges
	s.findSlots(leases)
}

// findSlots looks up the table's entries of demanded slots, which stay valid as long as the slots are demanded. The
// lock is held.
func (s *BatchSource) findSlots(leases []exchange.Lease) {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	s.slots = make([]demandedSlot, 0, len(leases))
	for _, r := range s.demanded {
		for range r.next - r.first {
			entry := s.table.demands.entries[leases[len(s.slots)].Key]
			s.slots = append(s.slots, demandedSlot{version: r.version, entry: entry})
		}
	}
}

// batches lists the current batch and those after it that are certain. The lock is held.
func (s *BatchSource) batches() []rl.Batch {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	if outcomes := s.table.counters.Outcomes; s.laidOut == nil || s.outcomes != outcomes {
		if s.rejections != s.table.rejections {
			for i := range s.slots {
				s.slots[i].known = false
			}
			s.rejections = s.table.rejections
		}
		s.laidOut, s.outcomes = s.rules().Batches(s.at, s.newest, s.outcome), outcomes
	}
	return s.laidOut
}

// outcome implements rl.Known for the groups of the table. Each new outcome causes a look-up of all slots of a batch.
// Most of these slots are demanded and are found without their keys. The locks are held.
func (s *BatchSource) outcome(slot, version int64) (rl.Outcome, bool) {
	if len(s.demanded) > 0 {
		if i := slot - s.demanded[0].first; i >= 0 && i < int64(len(s.slots)) && s.slots[i].version == version {
			return s.slots[i].knownOutcome()
		}
	}
	e := s.table.demands.entries[s.key(slot, version)]
	if e == nil || !e.isKnown() {
		return 0, false
	}
	return e.group.Outcome, true
}

// knownOutcome returns the outcome of the slot if it is known.
func (d *demandedSlot) knownOutcome() (rl.Outcome, bool) {
	if !d.known && d.entry.isKnown() {
		d.known, d.outcome = true, d.entry.group.Outcome
	}
	return d.outcome, d.known
}

func (s *BatchSource) key(slot, version int64) rl.Key {
	return rl.Key{Kind: rl.Train, Slot: slot, Lineage: s.versions[version].Lineage}
}

func (s *BatchSource) lease(slot int64, v Version, session int64) exchange.Lease {
	task := s.Task(slot)
	shape := s.config.Groups[task.Environment]
	return exchange.Lease{
		Key:         rl.Key{Kind: rl.Train, Slot: slot, Lineage: v.Lineage},
		Environment: task.Environment, Split: task.Split, Task: task.Index,
		GroupSize: shape.Size, MinMembers: shape.MinMembers,
		Sampler: v.Sampler, Seed: s.config.Seed,
		SamplingSession: session,
	}
}

// Task returns the task of a slot, which is also the task of its lease.
func (s *BatchSource) Task(slot int64) rl.Task { return s.config.Rules.Task(s.config.Stream, slot) }

// Batch is a decided batch with its groups.
type Batch struct {
	Slots rl.Batch
	// After is the position after the batch.
	After rl.Position
	// Version is the version that sampled the batch.
	Version Version
	// Groups are in slot order and include tombstones. Digests are the digests of the groups.
	Groups  []rl.Group
	Digests []rl.Digest
}

// Manifest lists the slots of the batch.
func (b Batch) Manifest() rl.Manifest {
	return b.Slots.Manifest(func(slot int64) (rl.Outcome, rl.Digest) {
		i := slot - b.Slots.First
		return b.Groups[i].Outcome, b.Digests[i]
	})
}

// Batch waits until the current batch is decided. It returns early when ctx ends, or with ErrPolicyMissing.
func (s *BatchSource) Batch(ctx context.Context) (batch Batch, err error) {
	missing, err := wait.For(ctx, &s.table.changes.any, func() (missing, ok bool) {
		if batch, ok = s.decided(); ok {
			return false, true
		}
		missing = s.isPolicyMissing()
		return missing, missing
	})
	if missing {
		return Batch{}, ErrPolicyMissing
	}
	return batch, err
}

func (s *BatchSource) decided() (Batch, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	batches := s.batches()
	if len(batches) == 0 || !batches[0].Decided() {
		return Batch{}, false
	}
	batch := Batch{Slots: batches[0], After: s.config.Rules.After(batches[0]), Version: s.versions[batches[0].Version]}
	for slot := batch.Slots.First; slot < batch.Slots.Next; slot++ {
		group, digest, ok := s.table.Group(s.key(slot, batch.Slots.Version))
		if !ok {
			// A group of the batch is not known.
			return Batch{}, false
		}
		batch.Groups, batch.Digests = append(batch.Groups, group), append(batch.Digests, digest)
	}
	return batch, true
}

func (s *BatchSource) isPolicyMissing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.versions {
		if s.table.IsMissing(v.Sampler) {
			return true
		}
	}
	return false
}

// Progress returns how many groups of the current batch are known, and how many it has so far.
func (s *BatchSource) Progress() (known, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.versions) == 0 {
		return 0, 0
	}
	batches := s.batches()
	if len(batches) == 0 {
		return 0, 0
	}
	all = int(batches[0].Next - batches[0].First)
	return all - len(batches[0].Missing), all
}
