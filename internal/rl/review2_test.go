// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"testing"
	"time"
)

func TestReviewDigestCost(t *testing.T) {
	t.Skip("finding not repaired yet: learner section 3, item 5")
	var groups []Group
	for g := range 32 {
		gr := Group{Key: Key{Slot: int64(g)}}
		for m := range 8 {
			s := Segment{Tokens: make([]int32, 8192), Actions: make([]bool, 8192), Logprobs: make([]float32, 8192)}
			gr.Members = append(gr.Members, Member{Index: m, Trajectories: []Trajectory{{Segments: []Segment{s}}}})
		}
		groups = append(groups, gr)
	}
	began := time.Now()
	for _, g := range groups {
		g.Digest()
	}
	t.Logf("digests of %d tokens: %v", 32*8*8192, time.Since(began))
}
