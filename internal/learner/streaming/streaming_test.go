// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package streaming

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// groupOf returns a group of three members, each with a solver and a judge.
func groupOf(slot int64) rl.Group {
	g := rl.Group{Key: rl.Key{Kind: rl.Train, Slot: slot}}
	if slot == 2 {
		return g.Tombstone(rl.Constant, "x")
	}
	for i := range 3 {
		m := rl.Member{Index: i}
		for j, role := range []string{"solver", "judge"} {
			reward := float64((slot*slot+3)*int64(2*i+j+1)%7) / 3
			m.Trajectories = append(m.Trajectories, rl.Trajectory{Role: role, Key: role, Reward: reward, Segments: []rl.Segment{{
				Tokens: []int32{1, int32(slot), int32(i)}, Actions: []bool{false, true, true}, Logprobs: []float32{0, -1, -0.5},
			}}})
			m.Reward += reward
		}
		g.Members = append(g.Members, m)
	}
	return g
}

// collector is a target.
type collector struct {
	datums []rl.Datum
	err    error
}

func (c *collector) Add(_ context.Context, datums []rl.Datum) (bool, error) {
	c.datums = append(c.datums, datums...)
	return true, c.err
}

// algorithms are those of all estimators, one for solvers and one for judges.
func algorithms() map[string]contract.Algorithm {
	all := map[string]contract.Algorithm{}
	var estimators []contract.Advantage
	for _, baseline := range []contract.Baseline{contract.BaselineGroupMean, contract.BaselineLeaveOneOut, contract.BaselineBatchMean, contract.BaselineNone} {
		for _, scale := range []contract.Scale{contract.ScaleNone, contract.ScaleGroupStd, contract.ScaleBatchStd} {
			estimators = append(estimators, contract.Advantage{Baseline: baseline, Scale: scale})
		}
	}
	for _, own := range estimators {
		for _, judges := range estimators {
			for _, grouping := range []contract.Grouping{"", contract.GroupingEpisode} {
				all[fmt.Sprint(own, judges, grouping)] = contract.Algorithm{
					Advantage: own, Grouping: grouping, DropConstantGroups: true, Roles: []contract.Role{{Name: "judge", Advantage: judges}},
				}
			}
		}
	}
	return all
}

// TestGroupsHaveTheDataOfTheirBatch adds the groups of a batch one by one. Where nothing is an obstacle, the data are to the last bit
// those of the batch; where something is, they are others.
func TestGroupsHaveTheDataOfTheirBatch(t *testing.T) {
	var groups []rl.Group
	for slot := range int64(6) {
		groups = append(groups, groupOf(slot))
	}
	same := 0
	for name, algorithm := range algorithms() {
		want, err := rl.Datums(groups, rl.Advantages(groups, algorithm))
		if err != nil {
			t.Fatal(err)
		}
		target := &collector{}
		s := New(algorithm, target)
		for _, group := range groups {
			s.Add(t.Context(), leases.Settled{Groups: []rl.Group{group}, Digests: []rl.Digest{group.Digest()}})
		}
		equal, obstacle := cmp.Equal(want, target.datums), Obstacle(algorithm)
		if equal != (obstacle == "") {
			t.Errorf("%s: the data are those of the batch: %v, and the obstacle is %q", name, equal, obstacle)
		}
		if equal {
			same++
		}
		if s.Taken() != len(groups) || s.Failed() {
			t.Errorf("%s: %d groups were taken (failed: %v), want %d", name, s.Taken(), s.Failed(), len(groups))
		}
	}
	if same == 0 {
		t.Error("no algorithm can be streamed")
	}
}

func TestObstacle(t *testing.T) {
	cases := map[string]struct {
		change func(*contract.Algorithm)
		want   bool
	}{
		"none":            {func(*contract.Algorithm) {}, false},
		"one substep":     {func(a *contract.Algorithm) { a.Substeps = 1 }, false},
		"two substeps":    {func(a *contract.Algorithm) { a.Substeps = 2 }, true},
		"a KL penalty":    {func(a *contract.Algorithm) { a.KL = &contract.KL{} }, true},
		"a lag":           {func(a *contract.Algorithm) { a.Lag = 2 }, false},
		"a role's scale":  {func(a *contract.Algorithm) { a.Roles[0].Advantage.Scale = contract.ScaleBatchStd }, true},
		"the run's scale": {func(a *contract.Algorithm) { a.Advantage.Scale = contract.ScaleBatchStd }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			estimator := contract.Advantage{Baseline: contract.BaselineGroupMean, Scale: contract.ScaleNone}
			algorithm := contract.Algorithm{Advantage: estimator, Roles: []contract.Role{{Name: "judge", Advantage: estimator}}}
			tc.change(&algorithm)
			if got := Obstacle(algorithm); (got != "") != tc.want {
				t.Errorf("Obstacle gives %q", got)
			}
		})
	}
}

func TestFinish(t *testing.T) {
	failure := errors.New("a request failed")
	one, two := groupOf(0), groupOf(1)
	cases := map[string]struct {
		err    error
		digest []rl.Digest
		want   error
	}{
		"the batch begins with what was added": {nil, []rl.Digest{one.Digest(), two.Digest()}, nil},
		"the batch is what was added":          {nil, []rl.Digest{one.Digest()}, nil},
		"the batch begins with another group":  {nil, []rl.Digest{two.Digest(), one.Digest()}, errOtherGroups},
		"the batch is empty":                   {nil, nil, errOtherGroups},
		"a request failed":                     {failure, []rl.Digest{one.Digest()}, failure},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := New(contract.Algorithm{Advantage: contract.Advantage{Baseline: contract.BaselineNone, Scale: contract.ScaleNone}}, &collector{err: tc.err})
			s.Add(t.Context(), leases.Settled{Groups: []rl.Group{one}, Digests: []rl.Digest{one.Digest()}})
			if got := s.Finish(leases.Batch{Digests: tc.digest}); !errors.Is(got, tc.want) {
				t.Errorf("Finish gives %v, want %v", got, tc.want)
			}
		})
	}
}
