// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/supervised"
)

// outcomes are the outcomes of rows that are not trained on.
var outcomes = map[supervised.Reason]rl.Outcome{
	supervised.NoWeight: rl.NoWeight, supervised.NotRendered: rl.NotRendered, supervised.TooLong: rl.TooLong,
	supervised.Empty: rl.Empty, supervised.Filtered: rl.Filtered,
}

// keyOf returns the key of a row. It has no lineage: a row is the same for every policy.
func keyOf(slot int64) rl.Key { return rl.Key{Kind: rl.Train, Slot: slot} }

// groupOf makes the group of an example: one member with one trajectory of one segment, which was not sampled.
func groupOf(slot int64, d supervised.Datum) rl.Group {
	segment := rl.Segment{
		Tokens: append(slices.Clone(d.Tokens[:1]), d.Targets...), Weights: append([]float32{0}, d.Weights...),
		Logprobs: make([]float32, len(d.Tokens)+1), Actions: make([]bool, len(d.Tokens)+1),
	}
	for i, weight := range segment.Weights {
		segment.Actions[i] = weight != 0
	}
	return rl.Group{
		Key: keyOf(slot), Environment: stream,
		Members: []rl.Member{{Trajectories: []rl.Trajectory{{Segments: []rl.Segment{segment}}}}},
	}
}

// tombstoneOf makes the group of a row that is not trained on.
func tombstoneOf(t supervised.Tombstone) rl.Group {
	return rl.Group{
		Key: keyOf(t.Slot), Environment: stream, Outcome: outcomes[t.Unusable.Reason], Reason: t.Unusable.Err.Error(),
	}
}

// groupsOf returns the groups of a batch in slot order.
func groupsOf(b supervised.Batch) []rl.Group {
	groups := make([]rl.Group, b.Next-b.First)
	for i, d := range b.Datums {
		groups[b.Slots[i]-b.First] = groupOf(b.Slots[i], d)
	}
	for _, t := range b.Tombstones {
		groups[t.Slot-b.First] = tombstoneOf(t)
	}
	return groups
}
