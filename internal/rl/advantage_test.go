// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
)

// rewarded returns a usable group whose members have these rewards. NaN stands for a faulted member.
func rewarded(rewards ...float64) Group {
	g := Group{}
	for i, r := range rewards {
		m := Member{Index: i, Reward: r, Trajectories: []Trajectory{{Reward: r}}}
		if math.IsNaN(r) {
			m = Member{Index: i, Outcome: EnvironmentFault}
		}
		g.Members = append(g.Members, m)
	}
	return g
}

// wholeAdvantages returns the advantages of members that have one trajectory each, and 0 for members without a
// trajectory.
func wholeAdvantages(groups []Group, alg algorithm.Algorithm) [][]float32 {
	out := make([][]float32, len(groups))
	for g, members := range Advantages(groups, alg) {
		out[g] = make([]float32, len(members))
		for m, trajectories := range members {
			for _, a := range trajectories {
				out[g][m] = a.Values[0]
			}
		}
	}
	return out
}

func TestAdvantages(t *testing.T) {
	nan := math.NaN()
	root := func(v float64) float32 { return float32(math.Sqrt(v)) }
	cases := map[string]struct {
		groups    []Group
		advantage algorithm.Advantage
		want      [][]float32
	}{
		"a group's mean is subtracted": {
			groups:    []Group{rewarded(1, 0, 0, 1), rewarded(1, 0, 0)},
			advantage: algorithm.Advantage{Baseline: algorithm.BaselineGroupMean, Scale: algorithm.ScaleNone},
			want:      [][]float32{{0.5, -0.5, -0.5, 0.5}, {float32(2.0 / 3), float32(-1.0 / 3), float32(-1.0 / 3)}},
		},
		"members that faulted count for nothing": {
			groups:    []Group{rewarded(1, nan, 0, nan)},
			advantage: algorithm.Advantage{Baseline: algorithm.BaselineGroupMean, Scale: algorithm.ScaleNone},
			want:      [][]float32{{0.5, 0, -0.5, 0}},
		},
		"tombstones count for nothing": {
			groups:    []Group{{Outcome: Constant, Members: rewarded(8, 8).Members}, rewarded(1, 0)},
			advantage: algorithm.Advantage{Baseline: algorithm.BaselineBatchMean, Scale: algorithm.ScaleNone},
			want:      [][]float32{{0, 0}, {0.5, -0.5}},
		},
		"equal rewards give exact zeros": {
			groups:    []Group{rewarded(0.1, 0.1, 0.1), rewarded(0.7, 0.7, 0.7, 0.7, 0.7, 0.7)},
			advantage: algorithm.Advantage{Baseline: algorithm.BaselineGroupMean, Scale: algorithm.ScaleGroupStd},
			want:      [][]float32{{0, 0, 0}, {0, 0, 0, 0, 0, 0}},
		},
		"rewards that differ by rounding are equal": {
			groups:    []Group{rewarded(0.6000000000000001, 0.6, 0.6000000000000001, 0.6), rewarded(3e9, 3e9+1e-6)},
			advantage: algorithm.Advantage{Baseline: algorithm.BaselineGroupMean, Scale: algorithm.ScaleGroupStd},
			want:      [][]float32{{0, 0, 0, 0}, {0, 0}},
		},
		"rewards that differ by little more are not": {
			groups:    []Group{rewarded(0.6, 0.6+4e-8)},
			advantage: algorithm.Advantage{Baseline: algorithm.BaselineGroupMean, Scale: algorithm.ScaleGroupStd},
			want:      [][]float32{{-1, 1}},
		},
		"equal rewards give exact zeros against the others, too": {
			groups:    []Group{rewarded(0.1, 0.1, 0.1)},
			advantage: algorithm.Advantage{Baseline: algorithm.BaselineLeaveOneOut, Scale: algorithm.ScaleNone},
			want:      [][]float32{{0, 0, 0}},
		},
		"the mean of the others is subtracted": {
			groups:    []Group{rewarded(3, 0, 0)},
			advantage: algorithm.Advantage{Baseline: algorithm.BaselineLeaveOneOut, Scale: algorithm.ScaleNone},
			want:      [][]float32{{3, -1.5, -1.5}},
		},
		"a member without others gets zero": {
			groups:    []Group{rewarded(3)},
			advantage: algorithm.Advantage{Baseline: algorithm.BaselineLeaveOneOut, Scale: algorithm.ScaleNone},
			want:      [][]float32{{0}},
		},
		"the batch's mean is subtracted": {
			groups:    []Group{rewarded(1, 1), rewarded(0, 0)},
			advantage: algorithm.Advantage{Baseline: algorithm.BaselineBatchMean, Scale: algorithm.ScaleNone},
			want:      [][]float32{{0.5, 0.5}, {-0.5, -0.5}},
		},
		"without a baseline the reward is the advantage": {
			groups:    []Group{rewarded(1, 0.25)},
			advantage: algorithm.Advantage{Baseline: algorithm.BaselineNone, Scale: algorithm.ScaleNone},
			want:      [][]float32{{1, 0.25}},
		},
		"a group's deviation divides": {
			groups:    []Group{rewarded(2, 0, 1)},
			advantage: algorithm.Advantage{Baseline: algorithm.BaselineGroupMean, Scale: algorithm.ScaleGroupStd},
			want:      [][]float32{{root(1.5), -root(1.5), 0}},
		},
		"a group's sample deviation divides": {
			groups:    []Group{rewarded(2, 0, 1)},
			advantage: algorithm.Advantage{Baseline: algorithm.BaselineGroupMean, Scale: algorithm.ScaleGroupStd, DDoF: 1},
			want:      [][]float32{{1, -1, 0}},
		},
		"one member has no sample deviation": {
			groups:    []Group{rewarded(2)},
			advantage: algorithm.Advantage{Baseline: algorithm.BaselineNone, Scale: algorithm.ScaleGroupStd, DDoF: 1},
			want:      [][]float32{{0}},
		},
		"the batch's deviation of centred rewards divides": {
			groups:    []Group{rewarded(12, 10), rewarded(0, 0)},
			advantage: algorithm.Advantage{Baseline: algorithm.BaselineGroupMean, Scale: algorithm.ScaleBatchStd},
			want:      [][]float32{{root(2), -root(2)}, {0, 0}},
		},
		"a batch of equal rewards gives zeros": {
			groups:    []Group{rewarded(0.3, 0.3), rewarded(0.3)},
			advantage: algorithm.Advantage{Baseline: algorithm.BaselineBatchMean, Scale: algorithm.ScaleBatchStd},
			want:      [][]float32{{0, 0}, {0}},
		},
		"no group gives nothing": {advantage: algorithm.Advantage{Baseline: algorithm.BaselineBatchMean,
			Scale: algorithm.ScaleBatchStd}, want: [][]float32{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, wholeAdvantages(tc.groups, algorithm.Algorithm{Advantage: tc.advantage})); diff != "" {
				t.Errorf("Advantages (-want +got):\n%s", diff)
			}
		})
	}
}
