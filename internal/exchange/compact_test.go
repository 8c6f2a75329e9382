// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"runtime"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// TestDecodedGroupsAreCompact decodes groups with segments of a few thousand tokens: they take at most 8.6 bytes a
// token, 8 of them for the token and its log-probability.
func TestDecodedGroupsAreCompact(t *testing.T) {
	const n, members, tokens = 200, 8, 6250
	encoded := encodedGroup(1, members, tokens).Message
	var groups []rl.Group
	before := heap()
	for range n {
		group, err := DecodeGroup(encoded)
		if err != nil {
			t.Fatal(err)
		}
		groups = append(groups, group)
	}
	if bytes := float64(heap()-before) / float64(len(groups)*members*tokens); bytes > 8.6 {
		t.Errorf("a group takes %.2f bytes a token, want at most 8.6", bytes)
	}
	runtime.KeepAlive(groups)
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestCompactGroupsAreEqual decodes masks of all forms.
func TestCompactGroupsAreEqual(t *testing.T) {
	group := exampleGroup(1, 6, 4)
	for m, actions := range [][]bool{
		{false, false, true, true}, {false, true, false, true}, {false, false, false, true}, {false, true, true, true},
		{false, true, true, false}, {false, false, true, false},
	} {
		s := &group.Members[m].Trajectories[0].Segments[0]
		s.Actions = actions
		for i, action := range actions {
			if s.Logprobs[i] = 0; action {
				s.Logprobs[i] = -1
			}
		}
	}
	checkRoundTrip(t, group)
	if promptAndReply()[sharedLength-1] || !promptAndReply()[sharedLength] {
		t.Error("the shared mask was changed")
	}
}
