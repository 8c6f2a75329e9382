// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
)

// exampleGroup is a valid group with a bit of everything.
func exampleGroup() Group {
	return Group{
		Key: Key{Kind: Train, Slot: 7, Lineage: Genesis("spec")}, Environment: "sums",
		PromptTokens: 30, SampledTokens: 9,
		Members: []Member{
			{
				Index: 0, Reward: 1, Parts: map[string]float64{"format": 1}, StopReason: "stop",
				Metrics: map[string]float64{"correct": 1, "answered": 1}, Turns: 2, PromptTokens: 12, SampledTokens: 3,
				Trajectories: []Trajectory{{Role: "solver", Reward: 1, StopReason: "stop", Segments: []Segment{
					{Turn: 0, Tokens: []int32{1, 2, 3}, Actions: []bool{false, true, true}, Logprobs: []float32{0, -0.5, -0.25}},
					{Turn: 1, Tokens: []int32{4, 5}, Actions: []bool{false, true}, Logprobs: []float32{0, -1},
						ReferenceLogprobs: []float32{-3, -2}},
				}}},
			},
			{Index: 1, Outcome: JudgeFault, Retries: 3},
			{
				Index: 3, Reward: 0, StopReason: "length", Turns: 1, PromptTokens: 6, SampledTokens: 2,
				Metrics: map[string]float64{"correct": 0, "answered": 0, "truncated": 1},
				Trajectories: []Trajectory{{StopReason: "length", Segments: []Segment{
					{Tokens: []int32{1, 9}, Actions: []bool{false, true}, Logprobs: []float32{0, -2}}}}},
			},
		},
	}
}

// exampleRoles is the example group with a second trajectory and with the rewards of steps.
func exampleRoles() Group {
	g := exampleGroup()
	solver := &g.Members[0].Trajectories[0]
	solver.Key, solver.StepRewards = "solver 1", []float64{0.25, 0.75}
	solver.Segments[0].Steps, solver.Segments[1].Steps = []Step{{Index: 0, End: 3}}, []Step{{Index: 1, End: 2}}
	g.Members[0].Trajectories = append(g.Members[0].Trajectories, Trajectory{
		Role: "judge", Key: "judge", Reward: 0.5, StepRewards: []float64{0.5}, StopReason: "length",
		Segments: []Segment{{Turn: 2, Tokens: []int32{6, 7}, Actions: []bool{false, true}, Logprobs: []float32{0, -3},
			Steps: []Step{{End: 2}}}},
	})
	return g
}

// changed returns a copy of the example group with one thing changed.
func changed(change func(g *Group)) Group {
	g := exampleGroup()
	change(&g)
	return g
}

func TestGroupDigestCoversWhatDecidesTheWeights(t *testing.T) {
	changes := map[string]func(g *Group){
		"kind":           func(g *Group) { g.Key.Kind, g.Key.Evaluation = Evaluate, "p" },
		"slot":           func(g *Group) { g.Key.Slot++ },
		"lineage":        func(g *Group) { g.Key.Lineage[31]++ },
		"outcome":        func(g *Group) { g.Outcome = Constant },
		"member index":   func(g *Group) { g.Members[2].Index = 2 },
		"member outcome": func(g *Group) { g.Members[2].Outcome = Deadline },
		"reward":         func(g *Group) { g.Members[0].Trajectories[0].Reward = math.Nextafter(1, 2) },
		"role":           func(g *Group) { g.Members[0].Trajectories[0].Role = "s" },
		"role of a trajectory without segments": func(g *Group) {
			g.Members[2].Trajectories[0] = Trajectory{Role: "s"}
		},
		"segments": func(g *Group) { g.Members[2].Trajectories[0].Segments = nil },
		"key":      func(g *Group) { g.Members[0].Trajectories[0].Key = "k" },
		"step rewards": func(g *Group) {
			g.Members[2].Trajectories[0].StepRewards = []float64{0}
			g.Members[2].Trajectories[0].Segments[0].Steps = []Step{{End: 2}}
		},
		"a further trajectory": func(g *Group) {
			g.Members[2].Trajectories = append(g.Members[2].Trajectories, Trajectory{})
		},
		"turn":   func(g *Group) { g.Members[0].Trajectories[0].Segments[1].Turn = 2 },
		"token":  func(g *Group) { g.Members[0].Trajectories[0].Segments[0].Tokens[1] = 3 },
		"action": func(g *Group) { g.Members[0].Trajectories[0].Segments[0].Actions[1] = false },
		"log-prob": func(g *Group) {
			g.Members[0].Trajectories[0].Segments[0].Logprobs[1] = math.Nextafter32(-0.5, 0)
		},
		"sign of zero":       func(g *Group) { g.Members[2].Trajectories[0].Reward = math.Copysign(0, -1) },
		"reference log-prob": func(g *Group) { g.Members[0].Trajectories[0].Segments[1].ReferenceLogprobs[1] = 0 },
		"teacher log-probs": func(g *Group) {
			g.Members[0].Trajectories[0].Segments[1].TeacherLogprobs = []float32{0, -1}
		},
		"teacher log-prob": func(g *Group) {
			g.Members[0].Trajectories[0].Segments[1].TeacherLogprobs = []float32{0, -2}
		},
		"a segment less": func(
			g *Group) {
			g.Members[0].Trajectories[0].Segments = g.Members[0].Trajectories[0].Segments[:1]
		},
		"a member less": func(g *Group) { g.Members = g.Members[1:] },
		"a token moved to the next segment": func(g *Group) {
			s := g.Members[0].Trajectories[0].Segments
			s[0].Tokens, s[1].Tokens = s[0].Tokens[:2], []int32{3, 4, 5}
		},
	}
	seen := map[Digest]string{exampleGroup().Digest(): "the group as it was"}
	for name, change := range changes {
		digest := changed(change).Digest()
		if other, ok := seen[digest]; ok {
			t.Errorf("changing the %s results in the digest of %s", name, other)
		}
		seen[digest] = name
	}
}

func TestGroupDigestCoversTrajectories(t *testing.T) {
	changes := map[string]func(g *Group){
		"nothing":             func(*Group) {},
		"a reward":            func(g *Group) { g.Members[0].Trajectories[1].Reward = 0 },
		"a step's reward":     func(g *Group) { g.Members[0].Trajectories[0].StepRewards[0] = 0 },
		"a role":              func(g *Group) { g.Members[0].Trajectories[1].Role = "solver" },
		"a key":               func(g *Group) { g.Members[0].Trajectories[1].Key = "solver 2" },
		"a token":             func(g *Group) { g.Members[0].Trajectories[1].Segments[0].Tokens[1]++ },
		"a step's index":      func(g *Group) { g.Members[0].Trajectories[0].Segments[1].Steps[0].Index = 0 },
		"a step's end":        func(g *Group) { g.Members[0].Trajectories[0].Segments[0].Steps[0].End = 2 },
		"a trajectory less":   func(g *Group) { g.Members[0].Trajectories = g.Members[0].Trajectories[:1] },
		"their order":         func(g *Group) { slices.Reverse(g.Members[0].Trajectories) },
		"a segment moved":     func(g *Group) { move(&g.Members[0].Trajectories[0], &g.Members[0].Trajectories[1]) },
		"an index":            func(g *Group) { g.Members[2].Index = 2 },
		"a tombstone instead": func(g *Group) { *g = g.Tombstone(Constant, "") },
	}
	seen := map[Digest]string{}
	for name, change := range changes {
		group := exampleRoles()
		change(&group)
		digest := group.Digest()
		if other, ok := seen[digest]; ok {
			t.Errorf("changing %s results in the digest of %s", name, other)
		}
		seen[digest] = name
	}
}

// move moves the last segment of a trajectory to another.
func move(from, to *Trajectory) {
	last := len(from.Segments) - 1
	to.Segments = append(to.Segments, from.Segments[last])
	from.Segments = from.Segments[:last]
}

func TestGroupDigestLeavesOutWhatDoesNot(t *testing.T) {
	changes := map[string]func(g *Group){
		"usage":              func(g *Group) { g.PromptTokens, g.SampledTokens = 1000, 1000 },
		"reason":             func(g *Group) { g.Reason = "because" },
		"environment":        func(g *Group) { g.Environment = "others" },
		"metrics":            func(g *Group) { g.Members[0].Metrics = nil },
		"parts":              func(g *Group) { g.Members[0].Parts = nil },
		"stop reason":        func(g *Group) { g.Members[0].StopReason = "" },
		"retries":            func(g *Group) { g.Members[0].Retries = 2 },
		"faulted members":    func(g *Group) { g.Members = slices.Delete(g.Members, 1, 2) },
		"order of members":   func(g *Group) { slices.Reverse(g.Members) },
		"tokens of a member": func(g *Group) { g.Members[0].PromptTokens = 99 },
	}
	want := exampleGroup().Digest()
	for name, change := range changes {
		if got := changed(change).Digest(); got != want {
			t.Errorf("changing the %s changes the digest", name)
		}
	}
}

func TestTombstoneKeepsItsDigestWithoutEpisodes(t *testing.T) {
	full := changed(func(g *Group) { g.Outcome = Constant })
	stone := exampleGroup().Tombstone(Constant, "all rewards are equal")
	if full.Digest() != stone.Digest() {
		t.Errorf("the digest of a tombstone depends on its episodes: got %v, want %v", full.Digest(), stone.Digest())
	}
	if exampleGroup().Tombstone(BelowFloor, "").Digest() == stone.Digest() {
		t.Errorf("the digest of a tombstone does not depend on its outcome: got %v for both",
			exampleGroup().Tombstone(BelowFloor, "").Digest())
	}
	if len(stone.Members) != 3 || stone.Members[0].Reward != 1 || stone.Members[0].Trajectories[0].Segments != nil {
		t.Errorf("the tombstone's members are %+v, want rewards without segments", stone.Members)
	}
	if exampleGroup().Members[0].Trajectories[0].Segments == nil || stone.SampledTokens != 9 {
		t.Errorf("segments of the receiver are %v and sampled tokens of the tombstone %d, want some and 9",
			exampleGroup().Members[0].Trajectories[0].Segments, stone.SampledTokens)
	}
}

func TestDigestsTakeEveryNaNForTheSame(t *testing.T) {
	quiet := changed(func(g *Group) {
		g.Members[0].Trajectories[0].Reward = math.NaN()
		g.Members[0].Trajectories[0].Segments[0].Logprobs[1] = float32(math.NaN())
	})
	odd := changed(func(g *Group) {
		g.Members[0].Trajectories[0].Reward = math.Float64frombits(0xfff8000000000123)
		g.Members[0].Trajectories[0].Segments[0].Logprobs[1] = math.Float32frombits(0xffc00077)
	})
	if quiet.Digest() != odd.Digest() {
		t.Errorf("two NaNs give two digests: got %v, want %v", quiet.Digest(), odd.Digest())
	}
}

// TestCanonicalFormsArePinned checks that the canonical forms do not change: the checkpoints of every run in progress
// are named by them.
func TestCanonicalFormsArePinned(t *testing.T) {
	manifest := Manifest{Step: 3, Slots: []SlotDigest{
		{Slot: 7, Digest: exampleGroup().Digest()}, {Slot: 8, Outcome: Constant, Digest: Digest{1}},
	}}
	next := Genesis("spec").Next(manifest, exampleSettings())
	roles := exampleSettings()
	roles.Algorithm.Grouping = algorithm.GroupingStep
	roles.Algorithm.Roles = []algorithm.Role{{Name: "judge", Advantage: inRole(roles.Algorithm.Advantage),
		Loss: &roles.Algorithm.Loss}}
	got := map[string]string{
		"roles": exampleRoles().Digest().String(), "next by roles": Genesis("spec").Next(manifest, roles).Short(),
		"group": exampleGroup().Digest().String(), "manifest": manifest.Digest().String(),
		"genesis": Genesis("spec").String(), "next": next.String(), "short": next.Short(),
	}
	want := map[string]string{
		"roles":         "672557227378ac9931c7f9ea5e88f8d65c1c3927b6fc323f5971c68bfd54d99b",
		"next by roles": "c4934725db",
		"group":         "9e97e95519a48fdb4ba1604591c6a26cfd6afe761886d01b5614f1b23148ab1e",
		"manifest":      "616e96803caa09e8e08789004995039db4c9e17929017205e8cbfc7b1bc4e7f1",
		"genesis":       "5eb78348d795172be44c5c2c6dce15913c420c99dc5a1820e3297253359c0d86",
		"next":          "399f68590390c0187e10d55d3ac788ff755556dff13ab1b3bc77cfebcdd22e1f",
		"short":         "399f685903",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("canonical forms changed (-want +got):\n%s", diff)
	}
}

func TestManifestDigestCoversEveryField(t *testing.T) {
	base := func() Manifest {
		return Manifest{Step: 1, Slots: []SlotDigest{{Slot: 2, Digest: Digest{3}}, {Slot: 3}}}
	}
	changes := map[string]func(m *Manifest){
		"step":    func(m *Manifest) { m.Step++ },
		"slot":    func(m *Manifest) { m.Slots[1].Slot++ },
		"digest":  func(m *Manifest) { m.Slots[0].Digest[31]++ },
		"outcome": func(m *Manifest) { m.Slots[1].Outcome = Constant },
		"length":  func(m *Manifest) { m.Slots = m.Slots[:1] },
	}
	for name, change := range changes {
		m := base()
		change(&m)
		if m.Digest() == base().Digest() {
			t.Errorf("changing the %s does not change the digest", name)
		}
	}
}
