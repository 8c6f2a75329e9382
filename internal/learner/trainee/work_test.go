// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainee

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// groupOf returns a usable group of two members, both of which sampled the token as their reply.
func groupOf(slot int64, token int32) rl.Group {
	g := rl.Group{Key: rl.Key{Kind: rl.Train, Slot: slot}}
	for i := range 2 {
		g.Members = append(g.Members, rl.Member{Index: i, Reward: float64(i), Trajectories: []rl.Trajectory{{
			Reward: float64(i), Segments: []rl.Segment{{Tokens: []int32{1, token}, Actions: []bool{false, true},
				Logprobs: []float32{0, -1}}},
		}}})
	}
	return g
}

func TestMeasure(t *testing.T) {
	clockAt := time.Unix(0, 0)
	clock := NewStopwatch(func() time.Time { return clockAt })
	clockAt = clockAt.Add(2 * time.Second)
	clock.Lap("time/sampling")
	clockAt = clockAt.Add(3 * time.Second)
	clock.Lap("time/train_step")
	batch := leases.Batch{Slots: rl.Batch{Step: 4}, Version: leases.Version{Step: 3}, Groups: []rl.Group{groupOf(0, 2)}}
	batch.Groups[0].SampledTokens = 10
	work := Work{Adam: tinker.AdamParams{LearningRate: 0.5}, Datums: []rl.Datum{{Tokens: []int32{1, 2}},
		{Tokens: []int32{3}}}}
	metrics, total := Measure(batch, work, Replies{Metrics: map[string]float64{"loss:sum": 7}}, clock, 8)
	want := map[string]float64{
		"optim/lr": 0.5, "loss:sum": 7, "batch/lag": 1, "time/sampling": 2, "time/train_step": 3, "time/total": 5,
	}
	for name, value := range want {
		if got, ok := metrics[name]; !ok || got != value {
			t.Errorf("%s is %v (%v), want %v", name, got, ok, value)
		}
	}
	if total != 5 || work.Tokens() != 3 {
		t.Errorf("the step took %v s and %d tokens, want 5 s and 3", total, work.Tokens())
	}
	batch.Version.Step = 4
	metrics, _ = Measure(batch, work, Replies{}, NewStopwatch(func() time.Time { return clockAt }), 8)
	for _, absent := range []string{"batch/lag", "sampled_tokens_per_second"} {
		if value, ok := metrics[absent]; ok {
			t.Errorf("%s is %v in a step on policy that took no time", absent, value)
		}
	}
}

func TestPrepare(t *testing.T) {
	alg := algorithm.Algorithm{
		Steps: 10, Substeps: 2, Loss: algorithm.Loss{Name: algorithm.LossPPO},
		Advantage: algorithm.Advantage{Baseline: algorithm.BaselineGroupMean, Scale: algorithm.ScaleNone},
		Optimizer: algorithm.Optimizer{LearningRate: 0.1, Schedule: "Linear", Beta1: new(0.9), Beta2: new(0.95),
			Epsilon:     1e-8,
			WeightDecay: 0.2, GradClipNorm: 3},
	}
	batch := leases.Batch{Slots: rl.Batch{Step: 5},
		Groups: []rl.Group{groupOf(0, 2), groupOf(1, 3).Tombstone(rl.BelowFloor, "x")}}
	work, err := Prepare(alg, nil, batch)
	if err != nil {
		t.Fatal(err)
	}
	if len(work.Datums) != 2 {
		t.Errorf("%d datums, want the datums of the only usable group", len(work.Datums))
	}
	want := tinker.AdamParams{LearningRate: work.Settings.LearningRate, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8,
		WeightDecay: 0.2, GradClipNorm: 3}
	if diff := cmp.Diff(want, work.Adam); diff != "" {
		t.Errorf("optimizer (-want +got):\n%s", diff)
	}
	if rate := work.Adam.LearningRate; rate <= 0 || rate >= 0.1 {
		t.Errorf("learning rate is %v in the middle of a linear schedule from 0.1", rate)
	}
}

// TestPrepareWithTeachers checks that the advantages of an environment with a teacher include the teacher's part, and
// that groups of equal rewards are kept in such an environment.
func TestPrepareWithTeachers(t *testing.T) {
	alg := algorithm.Algorithm{
		Steps: 10, Substeps: 1, ConstantGroups: algorithm.DropConstantGroups,
		Advantage: algorithm.Advantage{Baseline: algorithm.BaselineGroupMean, Scale: algorithm.ScaleNone},
		Optimizer: algorithm.Optimizer{LearningRate: 0.1, Beta1: new(0.9), Beta2: new(0.95)},
	}
	taught, constant, plain := groupOf(0, 2), groupOf(1, 3), groupOf(2, 4)
	taught.Environment, constant.Environment, plain.Environment = "math", "code", "none"
	for i := range 2 {
		taught.Members[i].Trajectories[0].Segments[0].TeacherLogprobs = []float32{0, -3}
		constant.Members[i].Trajectories[0].Segments[0].TeacherLogprobs = []float32{0, -0.5}
		constant.Members[i].Trajectories[0].Reward = 0
	}
	teachers := map[string]algorithm.Teacher{"math": {Model: "m", Coefficient: 0.5}, "code": {Model: "n", Coefficient: 1}}
	batch := leases.Batch{Slots: rl.Batch{Step: 5}, Groups: []rl.Group{taught, constant, plain}}
	work, err := Prepare(alg, teachers, batch)
	if err != nil {
		t.Fatal(err)
	}
	var got []float32
	for _, d := range work.Datums {
		got = append(got, d.TargetAdvantages()...)
	}
	if diff := cmp.Diff([]float32{-1.5, -0.5, 0.5, 0.5, -0.5, 0.5}, got); diff != "" {
		t.Errorf("advantages (-want +got):\n%s", diff)
	}
	metrics, _ := Measure(batch, work, Replies{}, NewStopwatch(time.Now), 8)
	for name, want := range map[string]float64{"env/math/teacher_kl": 2, "env/code/teacher_kl": -0.5, "teacher_kl": 0.75} {
		if metrics[name] != want {
			t.Errorf("%s is %v, want %v", name, metrics[name], want)
		}
	}
	if diff := cmp.Diff(teachers, work.Settings.Teachers); diff != "" {
		t.Errorf("teachers of the lineage (-want +got):\n%s", diff)
	}
	constant.Members[0].Trajectories[0].Segments[0].TeacherLogprobs = nil
	if _, err := Prepare(alg, teachers, batch); err == nil {
		t.Error("Prepare accepts a group whose teacher's log-probabilities are missing")
	}
	if work, err := Prepare(alg, nil, batch); err != nil || work.klTeachers["math"].Tokens != 0 {
		t.Errorf("Prepare without teachers: %v, %+v", err, work.klTeachers)
	}
}
