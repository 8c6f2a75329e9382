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
)

// trainDemand names the demand of training; it is the first there is.
const trainDemand = "train"

// BatchConfig says what the batches of a run are made of.
type BatchConfig struct {
	Rules  rl.Rules
	Stream *rl.Stream
	// Seed of the run.
	Seed uint64
	// Groups by environment: size and floor of a group.
	Groups map[string]GroupShape
}

// GroupShape is how many episodes a group has, and how many of them have to be usable.
type GroupShape struct{ Size, MinMembers int }

// Version is a version of the policy that can be sampled.
type Version struct {
	Step    int64
	Lineage rl.Lineage
	Sampler string
}

// SamplingSession numbers the sampling session of the version's weights, in 48 bits: by lineage, so that
// samples of one policy are never taken for another's, and by path, since the number of a session that a
// former learner's sampler weights are behind cannot stand for weights that were saved anew.
func (v Version) SamplingSession(kind rl.Kind, plan string) int64 {
	const mask = 1<<48 - 1
	path := sha256.Sum256([]byte(v.Sampler))
	return rl.SamplingSession(kind, v.Lineage, plan) ^ int64(binary.LittleEndian.Uint64(path[:])&mask)
}

// BatchSource keeps the board's demand for training groups in line with what is known: the batch of the step in
// hand and, with a lag, those behind it as far as they are certain.
type BatchSource struct {
	board  *Table
	config BatchConfig

	mu       sync.Mutex
	at       rl.Position
	versions map[int64]Version
	newest   int64
	oldest   int64
}

// NewBatchSource demands nothing until Reset.
func NewBatchSource(board *Table, config BatchConfig) *BatchSource {
	board.Demand(trainDemand, nil)
	return &BatchSource{board: board, config: config, versions: map[int64]Version{}}
}

// Reset begins at a position with the versions that can be sampled there, the oldest first and without a gap
// up to the position's own.
func (t *BatchSource) Reset(at rl.Position, versions []Version) {
	t.mu.Lock()
	t.at = at
	clear(t.versions)
	for _, v := range versions {
		t.versions[v.Step] = v
	}
	t.oldest, t.newest = versions[0].Step, versions[len(versions)-1].Step
	t.mu.Unlock()
	t.refresh()
}

// Announce says that a further version can be sampled.
func (t *BatchSource) Announce(v Version) {
	t.mu.Lock()
	t.versions[v.Step], t.newest = v, v.Step
	t.mu.Unlock()
	t.refresh()
}

// Advance leaves the batch in hand behind.
func (t *BatchSource) Advance(to rl.Position) {
	t.mu.Lock()
	t.at = to
	for step := range t.versions {
		if step < t.rules().VersionOf(to.Step) {
			delete(t.versions, step)
		}
	}
	t.mu.Unlock()
	t.refresh()
}

// rules are the run's, with what is left of the lag's window.
func (t *BatchSource) rules() rl.Rules {
	rules := t.config.Rules
	rules.OldestVersion = t.oldest
	return rules
}

// Run refreshes the demand whenever the board changes, until ctx ends.
func (t *BatchSource) Run(ctx context.Context) {
	for {
		changed := t.board.Changed()
		t.refresh()
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// refresh plans the batches that can be sampled and demands their slots. Groups that are known stay in the
// demand, so that the board keeps them.
func (t *BatchSource) refresh() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.versions) == 0 {
		return
	}
	var leases []exchange.Lease
	for _, batch := range t.plan() {
		for slot := batch.First; slot < batch.Next; slot++ {
			leases = append(leases, t.lease(slot, t.versions[batch.Version]))
		}
	}
	t.board.Demand(trainDemand, leases)
}

func (t *BatchSource) plan() []rl.Batch {
	return t.rules().Batches(t.at, t.newest, func(slot, version int64) (rl.Outcome, bool) {
		group, _, ok := t.board.Group(t.key(slot, version))
		return group.Outcome, ok
	})
}

func (t *BatchSource) key(slot, version int64) rl.Key {
	return rl.Key{Kind: rl.Train, Slot: slot, Lineage: t.versions[version].Lineage}
}

func (t *BatchSource) lease(slot int64, v Version) exchange.Lease {
	task := t.config.Stream.Task(slot)
	shape := t.config.Groups[task.Environment]
	return exchange.Lease{
		Key:         rl.Key{Kind: rl.Train, Slot: slot, Lineage: v.Lineage},
		Environment: task.Environment, Split: task.Split, Task: task.Index,
		GroupSize: shape.Size, MinMembers: shape.MinMembers,
		Sampler: v.Sampler, Seed: t.config.Seed,
		SamplingSession: v.SamplingSession(rl.Train, ""),
	}
}

// Batch is a decided batch with its groups.
type Batch struct {
	Slots rl.Batch
	// Version that sampled it.
	Version Version
	// Groups are in slot order, tombstones among them, and Digests are theirs.
	Groups  []rl.Group
	Digests []rl.Digest
}

// Manifest of the batch.
func (b Batch) Manifest() rl.Manifest {
	return b.Slots.Manifest(func(slot int64) (rl.Outcome, rl.Digest) {
		i := slot - b.Slots.First
		return b.Groups[i].Outcome, b.Digests[i]
	})
}

// Batch waits until the batch of the step in hand is decided. It ends early with ctx, or with ErrPolicyGone.
func (t *BatchSource) Batch(ctx context.Context) (Batch, error) {
	for {
		changed := t.board.Changed()
		if batch, ok := t.decided(); ok {
			return batch, nil
		}
		if t.policyIsGone() {
			return Batch{}, ErrPolicyMissing
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Batch{}, context.Cause(ctx)
		}
	}
}

func (t *BatchSource) decided() (Batch, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	plans := t.plan()
	if len(plans) == 0 || !plans[0].Decided() {
		return Batch{}, false
	}
	batch := Batch{Slots: plans[0], Version: t.versions[plans[0].Version]}
	for slot := batch.Slots.First; slot < batch.Slots.Next; slot++ {
		group, digest, ok := t.board.Group(t.key(slot, batch.Slots.Version))
		if !ok {
			// A batch that is certain may end before slots that nobody needs to know.
			return Batch{}, false
		}
		batch.Groups, batch.Digests = append(batch.Groups, group), append(batch.Digests, digest)
	}
	return batch, true
}

func (t *BatchSource) policyIsGone() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.lineages(), func(l rl.Lineage) bool { return t.board.TakeMissing(Policy{Lineage: l}) })
}

func (t *BatchSource) lineages() []rl.Lineage {
	var lineages []rl.Lineage
	for _, v := range t.versions {
		lineages = append(lineages, v.Lineage)
	}
	return lineages
}

// Progress says how many groups of the batch in hand are known, of how many that it has so far.
func (t *BatchSource) Progress() (known, all int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.versions) == 0 {
		return 0, 0
	}
	plans := t.plan()
	if len(plans) == 0 {
		return 0, 0
	}
	all = int(plans[0].Next - plans[0].First)
	return all - len(plans[0].Missing), all
}
