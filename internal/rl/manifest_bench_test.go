// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import "testing"

// BenchmarkGroupDigest digests a group of 8 members of 8,192 tokens, which a learner does once for each group.
func BenchmarkGroupDigest(b *testing.B) {
	group := Group{}
	for i := range 8 {
		s := Segment{Tokens: make([]int32, 8192), Actions: make([]bool, 8192), Logprobs: make([]float32, 8192)}
		group.Members = append(group.Members, Member{Index: i, Trajectories: []Trajectory{{Segments: []Segment{s}}}})
	}
	for b.Loop() {
		group.Digest()
	}
}
