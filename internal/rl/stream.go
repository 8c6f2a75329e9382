// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/finite"
)

// Source is a split of an environment that a run takes tasks from.
type Source struct {
	Environment, Split string
	// Tasks is the number of tasks that are used, counted from the first of the split.
	Tasks int64
	// Shuffle draws them in a seeded order, another one in each pass; otherwise they keep the order of the split.
	Shuffle bool
	// Weight is the environment's share of slots relative to the others', the same for all its splits; 0
	// for every source when all tasks form one pool.
	Weight float64
}

// Task names the task of a slot.
type Task struct {
	Environment, Split string
	// Index of the task in its split.
	Index int64
}

// Stream maps slots to tasks, without an end. It is immutable.
//
// Without weights all tasks form one pool, and each pass over it, an epoch, is another seeded permutation
// of it. With weights the environments take turns, evenly and in proportion, and each goes through its own
// tasks in passes of its own. A pool in which some split is not shuffled spreads its splits evenly instead
// over each pass, so that such a split's tasks can come in their own order.
type Stream struct {
	seed  uint64
	pools []pool
	// turns are the pools' shares of a round of slots; one pool has them all.
	turns []int64
	round int64
}

// pool is a set of tasks that the stream goes through together.
type pool struct {
	// scope distinguishes the permutations of pools under one seed.
	scope   string
	sources []Source
	counts  []int64
	total   int64
	// ordered is set when some source keeps its own order.
	ordered bool
}

// maxTasks keeps sums of tasks and the arithmetic of permutations within 64 bits.
const maxTasks = int64(1) << 40

// weightParts is the resolution of the shares of weighted environments, which are rounded to multiples of
// 1/weightParts.
const weightParts = 1 << 20

// NewStream returns the stream of a run. The order of sources does not matter. It fails when there is no task, a source
// is named twice, a number is out of range, or weights are given for some sources only or differ within an environment.
func NewStream(seed uint64, sources []Source) (*Stream, error) {
	sorted := slices.Clone(sources)
	slices.SortFunc(sorted, func(a, b Source) int {
		return cmp.Or(cmp.Compare(a.Environment, b.Environment), cmp.Compare(a.Split, b.Split))
	})
	if err := validateSources(sorted); err != nil {
		return nil, fmt.Errorf("making the stream of slots: %w", err)
	}
	s := &Stream{seed: seed}
	if sorted[0].Weight == 0 {
		s.pools = []pool{newPool("all", sorted)}
		s.turns, s.round = []int64{1}, 1
		return s, nil
	}
	weights := 0.0
	for chunk := range chunks(sorted) {
		s.pools = append(s.pools, newPool("environment "+chunk[0].Environment, chunk))
		weights += chunk[0].Weight
	}
	for _, p := range s.pools {
		turns := max(1, int64(p.sources[0].Weight/weights*weightParts+0.5))
		s.turns = append(s.turns, turns)
		s.round += turns
	}
	return s, nil
}

// chunks yields the runs of one environment in sorted sources.
func chunks(sources []Source) func(yield func([]Source) bool) {
	return func(yield func([]Source) bool) {
		for start := 0; start < len(sources); {
			end := start
			for end < len(sources) && sources[end].Environment == sources[start].Environment {
				end++
			}
			if !yield(sources[start:end]) {
				return
			}
			start = end
		}
	}
}

func validateSources(sorted []Source) error {
	if len(sorted) == 0 {
		return errors.New("no source is given")
	}
	for i, s := range sorted {
		switch {
		case s.Tasks < 1 || s.Tasks > maxTasks:
			return fmt.Errorf("split %s of %s has %d tasks, not 1 to %d", s.Split, s.Environment, s.Tasks, maxTasks)
		case !finite.Is(s.Weight) || s.Weight < 0:
			return fmt.Errorf("weight %v of %s is invalid", s.Weight, s.Environment)
		case (s.Weight == 0) != (sorted[0].Weight == 0):
			return errors.New("a weight is given for some environments only")
		}
		if i == 0 || s.Environment != sorted[i-1].Environment {
			continue
		}
		if s.Split == sorted[i-1].Split {
			return fmt.Errorf("split %s of %s is given twice", s.Split, s.Environment)
		}
		if s.Weight != sorted[i-1].Weight {
			return fmt.Errorf("splits of %s differ in weight", s.Environment)
		}
	}
	return nil
}

func newPool(scope string, sources []Source) pool {
	p := pool{scope: scope, sources: sources}
	for _, s := range sources {
		p.counts = append(p.counts, s.Tasks)
		p.total += s.Tasks
		p.ordered = p.ordered || !s.Shuffle
	}
	return p
}

// Task returns the task of a slot; slots count from 0.
func (s *Stream) Task(slot int64) Task { return s.task(slot, "") }

// Refill returns the task that replaces a dropped group. In splits that keep their own order, it is the task that
// Task returns, so that refills do not leave that order. It goes through shuffled splits in another order, also
// without an end.
func (s *Stream) Refill(position int64) Task { return s.task(position, " refills") }

func (s *Stream) task(slot int64, scope string) Task {
	which, turn := interleave(s.turns, slot%s.round)
	p := s.pools[which]
	p.scope += scope
	return p.task(s.seed, slot/s.round*s.turns[which]+turn)
}

// Tasks counts the tasks: the slots of an epoch, when no weights are given.
func (s *Stream) Tasks() int64 {
	sum := int64(0)
	for _, p := range s.pools {
		sum += p.total
	}
	return sum
}

// task returns the pool's element at a position, counted over all passes.
func (p pool) task(seed uint64, position int64) Task {
	pass, i := position/p.total, position%p.total
	if !p.ordered {
		i = newPermutation(p.total, seed, p.scope, pass).at(i)
		return p.element(i)
	}
	which, rank := interleave(p.counts, i)
	source := p.sources[which]
	if source.Shuffle {
		scope := p.scope + " split " + source.Environment + "/" + source.Split
		rank = newPermutation(source.Tasks, seed, scope, pass).at(rank)
	}
	return Task{Environment: source.Environment, Split: source.Split, Index: rank}
}

// element returns the i-th task of the concatenated sources.
func (p pool) element(i int64) Task {
	which := 0
	for i >= p.counts[which] {
		i -= p.counts[which]
		which++
	}
	return Task{Environment: p.sources[which].Environment, Split: p.sources[which].Split, Index: i}
}
