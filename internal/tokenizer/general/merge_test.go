// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package general

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// plainMerge is the definition of merging.
func plainMerge(ids []int32, pairs map[uint64]ranked) []int32 {
	ids = slices.Clone(ids)
	for {
		best, at := ranked{rank: noRank}, 0
		for i := range len(ids) - 1 {
			if found, ok := pairs[pairOf(ids[i], ids[i+1])]; ok && found.rank < best.rank {
				best, at = found, i
			}
		}
		if best.rank == noRank {
			return ids
		}
		ids = slices.Replace(ids, at, at+2, best.into)
	}
}

// TestMerge checks that short and long words are merged in the same order, whatever the merges are.
func TestMerge(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		pairs := map[uint64]ranked{}
		for rank := range 1 + chance.IntN(30) {
			pairs[pairOf(int32(chance.IntN(8)), int32(chance.IntN(8)))] = ranked{rank: uint32(rank), into: int32(chance.IntN(8))}
		}
		for _, n := range []int{0, 1, 2, few, few + 1, 300} {
			ids := make([]int32, n)
			for i := range ids {
				ids[i] = int32(chance.IntN(8))
			}
			w := word{ids: slices.Clone(ids)}
			if diff := cmp.Diff(plainMerge(ids, pairs), w.merge([]int32{}, pairs)); diff != "" {
				t.Fatalf("round %d: merging %d (-want +got):\n%s", round, ids, diff)
			}
		}
	}
}

// TestMergeAgain checks that a word does not see the former contents of its array.
func TestMergeAgain(t *testing.T) {
	pairs := map[uint64]ranked{pairOf(1, 2): {rank: 0, into: 3}}
	w := &word{}
	for _, n := range []int{200, 3, few + 5} {
		w.ids = slices.Repeat([]int32{1, 2}, n)
		if diff := cmp.Diff(slices.Repeat([]int32{3}, n), w.merge(nil, pairs)); diff != "" {
			t.Errorf("merging %d pairs (-want +got):\n%s", n, diff)
		}
	}
}
