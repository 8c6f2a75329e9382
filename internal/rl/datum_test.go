// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
	group := Group{Key: Key{Slot: 6}, Members: []Member{{Outcome: Deadline},
		{Index: 1, Trajectories: []Trajectory{{Segments: segments}}}}}
	got, err := Datums([]Group{{Outcome: Constant}, group}, [][][]Advantage{{}, {nil, {{Values: []float32{0.5}}}}})
	if err != nil {
		t.Fatal(err)
	}
	want := []Datum{
		{
			Slot: 6, Member: 1, Segment: 0,
			Tokens: []int32{1, 2, 3, 10, 11, 4, 5}, Targets: []int32{2, 3, 10, 11, 4, 5, 12},
			Logprobs:  []float32{0, 0, -0.1, -0.2, 0, 0, -0.3},
			Advantage: 0.5,
			Mask:      []bool{false, false, true, true, false, false, true},
		},
		{
			Slot: 6, Member: 1, Segment: 1,
			Tokens: []int32{9, 9, 13}, Targets: []int32{9, 13, 14},
			Logprobs: []float32{0, -0.4, -0.5}, Advantage: 0.5, Mask: []bool{false, true, true},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("datums (-want +got):\n%s", diff)
	}
	spread := got[0]
	spread.Spread()
	for _, d := range []Datum{got[0], spread} {
		if diff := cmp.Diff([]float32{0, 0, 0.5, 0.5, 0, 0, 0.5}, d.TargetAdvantages()); diff != "" {
			t.Errorf("advantages of targets (-want +got):\n%s", diff)
		}
	}
}

func TestDatumsKeepReferences(t *testing.T) {
	got := NewDatum(Segment{
		Tokens: []int32{4, 5}, Actions: []bool{false, true}, Logprobs: []float32{0, -1}, ReferenceLogprobs: []float32{-3, -2},
		TeacherLogprobs: []float32{0, -4},
	}, Advantage{Values: []float32{2}})
	want := Datum{
		Tokens: []int32{4}, Targets: []int32{5}, Logprobs: []float32{-1}, Advantage: 2, Mask: []bool{true},
		ReferenceLogprobs: []float32{-2}, TeacherLogprobs: []float32{-4},
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
