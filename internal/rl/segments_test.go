// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// mergeTurns adds the turns of one trajectory one after the other, as an episode does.
func mergeTurns(turns []Transition) ([]Segment, error) {
	var builder SegmentBuilder
	for _, t := range turns {
		builder.Share(t.Observation)
		if _, err := builder.Append(t); err != nil {
			return nil, err
		}
	}
	return builder.Segments(), nil
}

func TestSegmentBuilder(t *testing.T) {
	cases := map[string]struct {
		turns []Transition
		want  []Segment
	}{
		"no turn gives no segment": {},
		"an empty reply gives no segment": {
			turns: []Transition{{Observation: []int32{1, 2}}},
		},
		"a prompt that is shorter than what came before begins anew": {
			turns: []Transition{
				{Turn: 4, Observation: []int32{1}, Action: []int32{2, 3}, Logprobs: []float32{-1, -1}},
				{Turn: 5, Observation: []int32{1, 2}, Action: []int32{4}, Logprobs: []float32{-2}},
			},
			want: []Segment{
				{Turn: 4, Tokens: []int32{1, 2, 3}, Actions: []bool{false, true, true}, Logprobs: []float32{0, -1, -1},
					Steps: []Step{{Index: 4, End: 3}}},
				{Turn: 5, Tokens: []int32{1, 2, 4}, Actions: []bool{false, false, true}, Logprobs: []float32{0, 0, -2},
					Steps: []Step{{Index: 5, End: 3}}},
			},
		},
		"a prompt that is all that came before extends": {
			turns: []Transition{
				{Turn: 4, Observation: []int32{1}, Action: []int32{2}, Logprobs: []float32{-1}},
				{Turn: 5, Observation: []int32{1, 2}, Action: []int32{4}, Logprobs: []float32{-2}},
			},
			want: []Segment{{
				Turn: 4, Tokens: []int32{1, 2, 4}, Actions: []bool{false, true, true}, Logprobs: []float32{0, -1, -2},
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

func TestSegmentBuilderLeavesItsArgumentsAlone(t *testing.T) {
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

// TestSegmentBuilderStoresTokensOnce checks that the tokens of a long conversation are in memory only once, both while
// a reply is sampled and afterwards.
func TestSegmentBuilderStoresTokensOnce(t *testing.T) {
	var builder SegmentBuilder
	first := []int32{1, 2, 3}
	stored, err := builder.Append(Transition{Observation: first, Action: []int32{9}, Logprobs: []float32{-1}})
	if err != nil {
		t.Fatal(err)
	}
	if &stored[0] != &builder.last().tokens[0] || !slices.Equal(stored, first) {
		t.Errorf("the observation is %v, and not a part of the segment", stored)
	}
	next := []int32{1, 2, 3, 9, 4}
	builder.Share(next)
	if tokens := builder.last().tokens; &tokens[0] != &next[0] || !slices.Equal(tokens, []int32{1, 2, 3, 9}) {
		t.Errorf("the segment has the tokens %v, and does not share the tokens of the next prompt", tokens)
	}
	other := []int32{1, 2, 7, 9, 4}
	builder.Share(other)
	if tokens := builder.last().tokens; !slices.Equal(tokens, []int32{1, 2, 3, 9}) {
		t.Errorf("the segment has the tokens %v after a prompt that does not continue it", tokens)
	}
}

func TestMaskLast(t *testing.T) {
	var builder SegmentBuilder
	for _, turn := range []Transition{
		{Turn: 0, Observation: []int32{1}, Action: []int32{2}, Logprobs: []float32{-1}},
		{Turn: 1, Observation: []int32{1, 2, 3}, Action: []int32{4}, Logprobs: []float32{-2}},
	} {
		if _, err := builder.Append(turn); err != nil {
			t.Fatal(err)
		}
	}
	builder.MaskLast()
	want := []Segment{{
		Tokens: []int32{1, 2, 3, 4}, Actions: []bool{false, true, false, false}, Logprobs: []float32{0, -1, 0, 0},
		Steps: []Step{{Index: 0, End: 2}, {Index: 1, End: 4}},
	}}
	if diff := cmp.Diff(want, builder.Segments()); diff != "" {
		t.Errorf("segments (-want +got):\n%s", diff)
	}
}

func TestSegmentBuilderRefuses(t *testing.T) {
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
