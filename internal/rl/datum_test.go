// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// mergeTurns adds the turns of one trajectory one after the other, as an episode does.
func mergeTurns(turns []Transition) ([]Segment, error) {
	var segments []Segment
	for _, t := range turns {
		var err error
		if segments, err = AppendTurn(segments, t); err != nil {
			return nil, err
		}
	}
	return Trainable(segments), nil
}

func TestTurnsAndDatumsGiveTheGoldenVectors(t *testing.T) {
	turns := []Transition{
		{Turn: 0, Observation: []int32{1, 2, 3}, Action: []int32{10, 11}, Logprobs: []float32{-0.1, -0.2}},
		{Turn: 1, Observation: []int32{1, 2, 3, 10, 11, 4, 5}, Action: []int32{12}, Logprobs: []float32{-0.3}},
		{Turn: 2, Observation: []int32{9, 9}, Action: []int32{13, 14}, Logprobs: []float32{-0.4, -0.5}},
	}
	segments, err := mergeTurns(turns)
	if err != nil {
		t.Fatal(err)
	}
	for i := range segments {
		segments[i].Steps = nil
	}
	group := Group{Key: Key{Slot: 6}, Members: []Member{{Outcome: Deadline}, {Index: 1, Trajectories: []Trajectory{{Segments: segments}}}}}
	got, err := Datums([]Group{{Outcome: Constant}, group}, [][][]Advantage{{}, {nil, {{Values: []float32{0.5}}}}})
	if err != nil {
		t.Fatal(err)
	}
	want := []Datum{
		{
			Slot: 6, Member: 1, Segment: 0,
			Tokens: []int32{1, 2, 3, 10, 11, 4, 5}, Targets: []int32{2, 3, 10, 11, 4, 5, 12},
			Logprobs:   []float32{0, 0, -0.1, -0.2, 0, 0, -0.3},
			Advantages: []float32{0, 0, 0.5, 0.5, 0, 0, 0.5},
			Mask:       []bool{false, false, true, true, false, false, true},
		},
		{
			Slot: 6, Member: 1, Segment: 1,
			Tokens: []int32{9, 9, 13}, Targets: []int32{9, 13, 14},
			Logprobs: []float32{0, -0.4, -0.5}, Advantages: []float32{0, 0.5, 0.5}, Mask: []bool{false, true, true},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("datums (-want +got):\n%s", diff)
	}
}

func TestAppendTurn(t *testing.T) {
	cases := map[string]struct {
		turns []Transition
		want  []Segment
	}{
		"no turn gives no segment": {},
		"an empty reply gives no segment": {
			turns: []Transition{{Observation: []int32{1, 2}}},
			want:  []Segment{},
		},
		"a prompt that is shorter than what came before begins anew": {
			turns: []Transition{
				{Turn: 0, Step: 4, Observation: []int32{1}, Action: []int32{2, 3}, Logprobs: []float32{-1, -1}},
				{Turn: 1, Step: 5, Observation: []int32{1, 2}, Action: []int32{4}, Logprobs: []float32{-2}},
			},
			want: []Segment{
				{Tokens: []int32{1, 2, 3}, Actions: []bool{false, true, true}, Logprobs: []float32{0, -1, -1}, Steps: []Step{{Index: 4, End: 3}}},
				{Turn: 1, Tokens: []int32{1, 2, 4}, Actions: []bool{false, false, true}, Logprobs: []float32{0, 0, -2}, Steps: []Step{{Index: 5, End: 3}}},
			},
		},
		"a prompt that is all that came before extends": {
			turns: []Transition{
				{Turn: 0, Step: 4, Observation: []int32{1}, Action: []int32{2}, Logprobs: []float32{-1}},
				{Turn: 1, Step: 5, Observation: []int32{1, 2}, Action: []int32{4}, Logprobs: []float32{-2}},
			},
			want: []Segment{{
				Tokens: []int32{1, 2, 4}, Actions: []bool{false, true, true}, Logprobs: []float32{0, -1, -2},
				Steps: []Step{{Index: 4, End: 2}, {Index: 5, End: 3}},
			}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := mergeTurns(tc.turns)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("segments (-want +got):\n%s", diff)
			}
			group := changed(func(g *Group) {
				g.Members[0].Trajectories[0].Segments, g.Members[0].Trajectories[0].StepRewards = got, make([]float64, 6)
			})
			if err := group.Validate(); err != nil {
				t.Errorf("Validate: %v", err)
			}
		})
	}
}

func TestAppendTurnLeavesItsArgumentsAlone(t *testing.T) {
	backing := []int32{1, 2, 3, 0, 0, 0, 0}
	turns := []Transition{
		{Turn: 0, Observation: backing[:3], Action: []int32{9}, Logprobs: []float32{-1}},
		{Turn: 1, Observation: []int32{1, 2, 3, 9, 5}, Action: []int32{6}, Logprobs: []float32{-1}},
	}
	if _, err := mergeTurns(turns); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int32{1, 2, 3, 0, 0, 0, 0}, backing); diff != "" {
		t.Errorf("the prompt's slice (-want +got):\n%s", diff)
	}
}

func TestAppendTurnRefuses(t *testing.T) {
	cases := map[string]Transition{
		"a reply with too few log-probs":  {Observation: []int32{1}, Action: []int32{2, 3}, Logprobs: []float32{-1}},
		"a reply that follows on nothing": {Action: []int32{2}, Logprobs: []float32{-1}},
	}
	for name, turn := range cases {
		t.Run(name, func(t *testing.T) {
			if s, err := mergeTurns([]Transition{turn}); err == nil {
				t.Errorf("segments = %v, want an error", s)
			}
		})
	}
}

func TestDatumsKeepReferences(t *testing.T) {
	got := NewDatum(Segment{
		Tokens: []int32{4, 5}, Actions: []bool{false, true}, Logprobs: []float32{0, -1}, ReferenceLogprobs: []float32{-3, -2},
	}, Advantage{Values: []float32{2}})
	want := Datum{
		Tokens: []int32{4}, Targets: []int32{5}, Logprobs: []float32{-1}, Advantages: []float32{2}, Mask: []bool{true},
		ReferenceLogprobs: []float32{-2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("datum (-want +got):\n%s", diff)
	}
}

func TestDatumsRefuseAdvantagesOfOtherGroups(t *testing.T) {
	for name, advantages := range map[string][][][]Advantage{
		"none": nil, "of a smaller group": {{{{Values: []float32{1}}}}}, "of members without trajectories": {{nil, nil}},
	} {
		if d, err := Datums([]Group{rewarded(1, 0)}, advantages); err == nil {
			t.Errorf("%s: Datums = %v, want an error", name, d)
		}
	}
}

func TestSplitSubsteps(t *testing.T) {
	cases := map[string]struct {
		n, substeps int
		want        []int
	}{
		"five in two":    {5, 2, []int{0, 2, 5}},
		"seven in three": {7, 3, []int{0, 2, 4, 7}},
		"ten in four":    {10, 4, []int{0, 2, 5, 7, 10}},
		"nine in four":   {9, 4, []int{0, 2, 4, 6, 9}},
		"two in five":    {2, 5, []int{0, 1, 2}},
		"none in two":    {0, 2, []int{0}},
	}
	for name, tc := range cases {
		if diff := cmp.Diff(tc.want, SplitSubsteps(tc.n, tc.substeps)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
