// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainee

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// rejectingModel rejects data that contain a token.
type rejectingModel struct {
	token int32
	err   error
	tries int
}

func (m *rejectingModel) Accepts(_ context.Context, datums []rl.Datum, _ Losses) (bool, error) {
	m.tries++
	for _, d := range datums {
		for _, token := range d.Targets {
			if token == m.token {
				return false, m.err
			}
		}
	}
	return true, m.err
}

// groupWith returns a usable group of two members, both of which sampled the token as their reply.
func groupWith(slot int64, token int32) rl.Group {
	g := rl.Group{Key: rl.Key{Kind: rl.Train, Slot: slot}}
	for i := range 2 {
		g.Members = append(g.Members, rl.Member{Index: i, Reward: float64(i), Trajectories: []rl.Trajectory{{
			Reward: float64(i), Segments: []rl.Segment{{Tokens: []int32{1, token}, Actions: []bool{false, true},
				Logprobs: []float32{0, -1}}},
		}}})
	}
	return g
}

func slots(groups []rl.Group) []int64 {
	var list []int64
	for _, g := range groups {
		list = append(list, g.Key.Slot)
	}
	return list
}

func TestBisect(t *testing.T) {
	const bad = 99
	outage := errors.New("the endpoint is unreachable")
	empty := groupWith(3, 2)
	for i := range empty.Members {
		empty.Members[i].Trajectories[0].Segments = nil // every reply was masked
	}
	cases := map[string]struct {
		groups   []rl.Group
		err      error
		want     []int64
		rejected bool // the batch as a whole
		whole    int  // number of batches that were rejected as a whole before
		wantErr  error
	}{
		"all are accepted": {groups: []rl.Group{groupWith(0, 2), groupWith(1, 3)}},
		"the first is rejected": {groups: []rl.Group{groupWith(0, bad), groupWith(1, 3), groupWith(2, 4)},
			want: []int64{0}},
		"the last is rejected": {groups: []rl.Group{groupWith(0, 2), groupWith(1, 3), groupWith(2, bad)},
			want: []int64{2}},
		"several are rejected": {groups: []rl.Group{groupWith(0, bad), groupWith(1, 3), groupWith(2, bad),
			groupWith(3, 4)}, want: []int64{0, 2}},
		"every group is rejected":   {groups: []rl.Group{groupWith(0, bad), groupWith(1, bad)}, rejected: true},
		"the one group is rejected": {groups: []rl.Group{groupWith(0, bad)}, want: []int64{0}},
		"and in the batch before":   {groups: []rl.Group{groupWith(0, bad)}, whole: 1, rejected: true},
		"a group without data": {groups: []rl.Group{empty, groupWith(1, bad), groupWith(2, 3), empty},
			want: []int64{1}},
		"tombstones are left out": {groups: []rl.Group{groupWith(0, 2), groupWith(1, bad).Tombstone(rl.BelowFloor, "x"),
			groupWith(2, bad)}, want: []int64{2}},
		"a failure is not rejection": {groups: []rl.Group{groupWith(0, 2), groupWith(1, 3)}, err: outage, wantErr: outage},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := Suspect{batch: &leases.Batch{Groups: tc.groups}, rejections: 2, rejectedWhole: tc.whole}
			got, err := s.Bisect(t.Context(), &rejectingModel{token: bad, err: tc.err}, Losses{})
			if (failure.CodeOf(err) == problem.DataRefused) != tc.rejected ||
				(tc.wantErr != nil && !errors.Is(err, tc.wantErr)) {
				t.Fatalf("bisect = %v, want the batch rejected %v, error %v", err, tc.rejected, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, slots(got)); diff != "" {
				t.Errorf("rejected slots (-want +got):\n%s", diff)
			}
			if s.batch != nil {
				t.Error("the batch is still suspected")
			}
			if forgiven := s.rejections == 0; forgiven != (len(tc.want) > 0) {
				t.Errorf("%d rejections are counted after %v were found", s.rejections, tc.want)
			}
		})
	}
}

func TestBisectTriesLogarithmically(t *testing.T) {
	var groups []rl.Group
	for slot := range int64(64) {
		groups = append(groups, groupWith(slot, 2))
	}
	groups[37] = groupWith(37, 99)
	model := &rejectingModel{token: 99}
	if _, err := bisect(t.Context(), groups, model, Losses{}); err != nil {
		t.Fatal(err)
	}
	if model.tries > 13 {
		t.Errorf("%d tries for one group of 64, want at most 13", model.tries)
	}
}

func TestSuspectGivesUp(t *testing.T) {
	var s Suspect
	cause := failure.New(problem.DataRefused, errors.New("x"), "training")
	for try := 1; try <= 4; try++ {
		final := failure.CodeOf(s.Record(leases.Batch{}, cause)) == problem.DataRefused
		if final != (try == 4) {
			t.Errorf("rejection %d ends the run: %v", try, final)
		}
	}
}
