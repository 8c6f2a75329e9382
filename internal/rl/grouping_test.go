// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
)

// solverJudge returns a usable group whose members have two solvers and a judge each. A member's rewards are in this
// order. NaN as the first reward stands for a faulted member.
func solverJudge(members ...[3]float64) Group {
	g := Group{}
	for i, rewards := range members {
		m := Member{Index: i}
		if math.IsNaN(rewards[0]) {
			g.Members = append(g.Members, Member{Index: i, Outcome: EnvironmentFault})
			continue
		}
		for j, key := range []string{"solver 1", "solver 2", "judge"} {
			m.Trajectories = append(m.Trajectories, Trajectory{Role: []string{"solver", "solver", "judge"}[j], Key: key,
				Reward: rewards[j]})
			m.Reward += rewards[j]
		}
		g.Members = append(g.Members, m)
	}
	return g
}

// stepped returns a usable group whose members have one trajectory each, with these rewards of steps.
func stepped(members ...[]float64) Group {
	g := Group{}
	for i, rewards := range members {
		t := Trajectory{StepRewards: rewards}
		for _, r := range rewards {
			t.Reward += r
		}
		g.Members = append(g.Members, Member{Index: i, Reward: t.Reward, Trajectories: []Trajectory{t}})
	}
	return g
}

// valuesOf returns the advantages as one list for each member.
func valuesOf(groups []Group, alg algorithm.Algorithm) [][]float32 {
	var out [][]float32
	for _, members := range Advantages(groups, alg) {
		for _, trajectories := range members {
			var values []float32
			for _, a := range trajectories {
				values = append(values, a.Values...)
			}
			out = append(out, values)
		}
	}
	return out
}

var (
	grpo      = algorithm.Advantage{Baseline: algorithm.BaselineGroupMean, Scale: algorithm.ScaleGroupStd}
	centred   = algorithm.Advantage{Baseline: algorithm.BaselineGroupMean, Scale: algorithm.ScaleNone}
	rloo      = algorithm.Advantage{Baseline: algorithm.BaselineLeaveOneOut, Scale: algorithm.ScaleNone}
	reinforce = algorithm.Advantage{Baseline: algorithm.BaselineNone, Scale: algorithm.ScaleNone}
	// prpo centres and scales over all trajectories of a role; reinforcePlusPlus centres by group.
	prpo              = algorithm.Advantage{Baseline: algorithm.BaselineBatchMean, Scale: algorithm.ScaleBatchStd}
	reinforcePlusPlus = algorithm.Advantage{Baseline: algorithm.BaselineGroupMean, Scale: algorithm.ScaleBatchStd}
)

// TestAdvantagesOfRolesAreThoseOfRLLM compares with values of rLLM's estimators for the roles of its solver-judge
// workflow: every role of a task is a group, here of 6 solvers and 3 judges. rLLM adds 1e-6 to its divisors, which the
// tolerance covers.
func TestAdvantagesOfRolesAreThoseOfRLLM(t *testing.T) {
	// Solvers 1 0 | 1 1 | 0 0 have the mean 1/2 and the deviation 1/2; judges 1 1 0 the mean 2/3 and deviation √2/3.
	first := solverJudge([3]float64{1, 0, 1}, [3]float64{1, 1, 1}, [3]float64{0, 0, 0})
	// Solvers 0 0 | 0 1 have the mean 1/4, judges 0 1 the mean 1/2.
	second := solverJudge([3]float64{0, 0, 0}, [3]float64{0, 1, 1})
	// All solvers have the mean 4/10, so that the squares of the deviations add up to 2.4; all judges 3/5 and 1.2. The
	// squares of the differences from the groups' means are 1.5 + 0.75 and 2/3 + 1/2.
	solver, judge := float32(math.Sqrt(0.24)), float32(math.Sqrt(0.24))
	solverLeft, judgeLeft := float32(math.Sqrt(2.25/10)), float32(math.Sqrt((2.0/3+1.0/2)/5))
	root2 := float32(math.Sqrt2)
	cases := map[string]struct {
		alg  algorithm.Algorithm
		want [][]float32
	}{
		"grpo": {algorithm.Algorithm{Advantage: grpo}, [][]float32{
			{1, -1, 1 / root2}, {1, 1, 1 / root2}, {-1, -1, -root2},
			{-1 / float32(math.Sqrt(3)), -1 / float32(math.Sqrt(3)), -1}, {-1 / float32(math.Sqrt(3)), float32(math.Sqrt(3)),
				1}}},
		"grpo without deviation": {algorithm.Algorithm{Advantage: centred}, [][]float32{
			{0.5, -0.5, 1.0 / 3}, {0.5, 0.5, 1.0 / 3}, {-0.5, -0.5, -2.0 / 3}, {-0.25, -0.25, -0.5}, {-0.25, 0.75, 0.5}}},
		"rloo": {algorithm.Algorithm{Advantage: rloo}, [][]float32{
			{0.6, -0.6, 0.5}, {0.6, 0.6, 0.5}, {-0.6, -0.6, -1}, {-1.0 / 3, -1.0 / 3, -1}, {-1.0 / 3, 1, 1}}},
		"reinforce": {algorithm.Algorithm{Advantage: reinforce}, [][]float32{{1, 0, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0},
			{0, 1, 1}}},
		"prpo": {algorithm.Algorithm{Advantage: prpo}, [][]float32{
			{0.6 / solver, -0.4 / solver, 0.4 / judge}, {0.6 / solver, 0.6 / solver, 0.4 / judge},
			{-0.4 / solver, -0.4 / solver, -0.6 / judge},
			{-0.4 / solver, -0.4 / solver, -0.6 / judge}, {-0.4 / solver, 0.6 / solver, 0.4 / judge}}},
		"reinforce++ with a baseline": {algorithm.Algorithm{Advantage: reinforcePlusPlus}, [][]float32{
			{0.5 / solverLeft, -0.5 / solverLeft, 1.0 / 3 / judgeLeft},
			{0.5 / solverLeft, 0.5 / solverLeft, 1.0 / 3 / judgeLeft},
			{-0.5 / solverLeft, -0.5 / solverLeft, -2.0 / 3 / judgeLeft},
			{-0.25 / solverLeft, -0.25 / solverLeft, -0.5 / judgeLeft},
			{-0.25 / solverLeft, 0.75 / solverLeft, 0.5 / judgeLeft}}},
		"grpo for solvers, reinforce for judges": {
			algorithm.Algorithm{Advantage: centred, Roles: []algorithm.Role{{Name: "judge", Advantage: inRole(reinforce)}}},
			[][]float32{{0.5, -0.5, 1}, {0.5, 0.5, 1}, {-0.5, -0.5, 0}, {-0.25, -0.25, 0}, {-0.25, 0.75, 1}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, valuesOf([]Group{first, second}, tc.alg),
				cmpopts.EquateApprox(0, 2e-6)); diff != "" {
				t.Errorf("advantages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGroupings(t *testing.T) {
	nan := math.NaN()
	roles := []Group{solverJudge([3]float64{1, 0, 0.5}, [3]float64{nan}, [3]float64{0, 0, 0})}
	cases := map[string]struct {
		groups []Group
		alg    algorithm.Algorithm
		want   [][]float32
	}{
		"the trajectories of a role": {roles, algorithm.Algorithm{Advantage: centred},
			[][]float32{{0.75, -0.25, 0.25}, nil, {-0.25, -0.25, -0.25}}},
		"the trajectories of a member": {roles, algorithm.Algorithm{Advantage: centred, Grouping: algorithm.GroupingEpisode},
			[][]float32{{0.5, -0.5, 0}, nil, {0, 0, 0}}},
		"those of a member, with a baseline for each role": {roles,
			algorithm.Algorithm{Advantage: centred, Grouping: algorithm.GroupingEpisode,
				Roles: []algorithm.Role{{Name: "judge", Advantage: inRole(reinforce)}}},
			[][]float32{{0.5, -0.5, 0.5}, nil, {0, 0, 0}}},
		"a member's deviation is that of its centred rewards": {roles,
			algorithm.Algorithm{Advantage: grpo, Grouping: algorithm.GroupingEpisode},
			[][]float32{{0.5 / float32(math.Sqrt(1.0/6)), -0.5 / float32(math.Sqrt(1.0/6)), 0}, nil, {0, 0, 0}}},
		"steps of one index": {[]Group{stepped([]float64{1, 3}, []float64{0}, []float64{0, 1, 9})},
			algorithm.Algorithm{Advantage: centred, Grouping: algorithm.GroupingStep},
			[][]float32{{2.0 / 3, 1}, {-1.0 / 3}, {-1.0 / 3, -1, 0}}},
		"the batch's mean is that of a role": {roles, algorithm.Algorithm{
			Advantage: algorithm.Advantage{Baseline: algorithm.BaselineBatchMean, Scale: algorithm.ScaleNone},
			Grouping:  algorithm.GroupingEpisode},
			[][]float32{{0.75, -0.25, 0.25}, nil, {-0.25, -0.25, -0.25}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, valuesOf(tc.groups, tc.alg), cmpopts.EquateApprox(0, 2e-7)); diff != "" {
				t.Errorf("advantages (-want +got):\n%s", diff)
			}
		})
	}
}

// TestConstantAdvantageGroupsAreDropped checks that a role whose rewards are equal is dropped from its group, and does
// not count in the role's mean over the batch.
func TestConstantAdvantageGroupsAreDropped(t *testing.T) {
	withData := func(g Group) Group {
		for i := range g.Members {
			for j := range g.Members[i].Trajectories {
				g.Members[i].Trajectories[j].Segments = []Segment{{Tokens: []int32{1, 2}, Actions: []bool{false, true},
					Logprobs: []float32{0, -1}}}
			}
		}
		return g
	}
	groups := []Group{
		withData(solverJudge([3]float64{1, 1, 1}, [3]float64{1, 1, 0})), // The solvers are constant.
		withData(solverJudge([3]float64{1, 0, 0}, [3]float64{0, 0, 0})), // The judges are constant.
	}
	alg := algorithm.Algorithm{ConstantGroups: algorithm.DropConstantGroups,
		Advantage: algorithm.Advantage{Baseline: algorithm.BaselineBatchMean, Scale: algorithm.ScaleNone}}
	advantages := Advantages(groups, alg)
	datums, err := Datums(groups, advantages)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range datums {
		got = append(got, fmt.Sprintf("%s of member %d: %v", d.Role, d.Member, d.TargetAdvantages()[0]))
	}
	want := []string{
		"judge of member 0: 0.5", "judge of member 1: -0.5",
		"solver of member 0: 0.75", "solver of member 0: -0.25", "solver of member 1: -0.25", "solver of member 1: -0.25",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("training data (-want +got):\n%s", diff)
	}
	for i, g := range groups {
		if g.IsConstant("") {
			t.Errorf("group %d is constant, though one of its roles is not", i)
		}
	}
	if !solverJudge([3]float64{1, 1, 0}, [3]float64{1, 1, 0}).IsConstant("") {
		t.Error("a group whose roles are both constant is not")
	}
	if episodes := solverJudge([3]float64{1, 1, 1},
		[3]float64{0, 0, 0}); !episodes.IsConstant(algorithm.GroupingEpisode) ||
		episodes.IsConstant("") {
		t.Error("a group of constant episodes is to be constant by episode, and not by role")
	}
}

// TestDatumsOfSteps checks that the tokens of each step have the step's advantage, and that a segment is dropped if
// all of its steps are.
func TestDatumsOfSteps(t *testing.T) {
	segments := []Segment{
		{Tokens: []int32{1, 2, 3, 4, 5, 6}, Actions: []bool{false, true, true, false, true, false},
			Logprobs: make([]float32, 6),
			Steps:    []Step{{Index: 0, End: 3}, {Index: 1, End: 6}}},
		{Tokens: []int32{7, 8}, Actions: []bool{false, true}, Logprobs: make([]float32, 2),
			Steps: []Step{{Index: 2, End: 2}}},
	}
	group := Group{Members: []Member{{Trajectories: []Trajectory{{StepRewards: []float64{1, 2, 3}, Segments: segments}}}}}
	cases := map[string]struct {
		dropped []bool
		want    [][]float32
	}{
		"all steps":         {nil, [][]float32{{1, 1, 0, 2, 0}, {3}}},
		"one of two":        {[]bool{false, true, false}, [][]float32{{1, 1, 0, 2, 0}, {3}}},
		"a whole segment":   {[]bool{false, false, true}, [][]float32{{1, 1, 0, 2, 0}}},
		"the other segment": {[]bool{true, true, false}, [][]float32{{3}}},
	}
	for name, tc := range cases {
		datums, err := Datums([]Group{group}, [][][]Advantage{{{{Values: []float32{1, 2, 3}, ByStep: true,
			Dropped: tc.dropped}}}})
		if err != nil {
			t.Fatal(err)
		}
		var got [][]float32
		for _, d := range datums {
			got = append(got, d.TargetAdvantages())
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: advantages by token (-want +got):\n%s", name, diff)
		}
	}
}

// TestAdvantagesDoNotDependOnOtherGroups checks that a group's advantages depend on no other group, unless the
// baseline or the scale is the batch's.
func TestAdvantagesDoNotDependOnOtherGroups(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var groups []Group
	for range 20 {
		var members [][3]float64
		for range 1 + random.IntN(5) {
			members = append(members, [3]float64{random.Float64(), random.Float64(), float64(random.IntN(2))})
		}
		groups = append(groups, solverJudge(members...))
	}
	for _, grouping := range []algorithm.Grouping{"", algorithm.GroupingEpisode} {
		for _, advantage := range []algorithm.Advantage{grpo, centred, rloo, reinforce} {
			alg := algorithm.Algorithm{Advantage: advantage, Grouping: grouping,
				Roles: []algorithm.Role{{Name: "judge", Advantage: inRole(rloo)}}}
			all := Advantages(groups, alg)
			for _, i := range random.Perm(len(groups)) {
				alone := Advantages(groups[i:i+1], alg)
				if diff := cmp.Diff(all[i:i+1], alone); diff != "" {
					t.Fatalf("grouping %q, %v: group %d alone (-among others +alone):\n%s", grouping, advantage, i, diff)
				}
			}
		}
	}
}

// TestOneRoleIsLikeNone checks that members with one trajectory have the same advantages with and without a role.
func TestOneRoleIsLikeNone(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var plain, named []Group
	for range 30 {
		var rewards []float64
		for range 1 + random.IntN(6) {
			rewards = append(rewards, float64(random.IntN(5))/4)
		}
		a, b := rewarded(rewards...), rewarded(rewards...)
		for i := range b.Members {
			b.Members[i].Trajectories[0].Role = "solver"
		}
		plain, named = append(plain, a), append(named, b)
	}
	for _, advantage := range []algorithm.Advantage{grpo, centred, rloo, reinforce, prpo, reinforcePlusPlus} {
		want, got := Advantages(plain, algorithm.Algorithm{Advantage: advantage}), Advantages(named, algorithm.Algorithm{
			Advantage: reinforce, Roles: []algorithm.Role{{Name: "solver", Advantage: inRole(advantage)}}})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v (-without role +with):\n%s", advantage, diff)
		}
	}
}
