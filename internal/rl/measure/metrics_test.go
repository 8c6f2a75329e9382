// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tinker-operator/tinker-operator/internal/metric"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// answered returns an episode of the built-in kind: a wrong answer, no answer and a cut reply all have reward 0.
func answered(index int, reward float64, metrics map[string]float64) rl.Member {
	return rl.Member{
		Index: index, Reward: reward, Metrics: metrics, StopReason: "stop", Turns: 1, PromptTokens: 10, SampledTokens: 4,
		Trajectories: []rl.Trajectory{{Reward: reward, Segments: []rl.Segment{{}}}},
	}
}

// rewarded returns a usable group whose members have one trajectory each.
func rewarded(rewards ...float64) rl.Group {
	g := rl.Group{}
	for i, r := range rewards {
		g.Members = append(g.Members, rl.Member{Index: i, Reward: r, Trajectories: []rl.Trajectory{{Reward: r}}})
	}
	return g
}

// solverJudge returns a usable group whose members have two solvers and a judge each. A member's rewards are in this
// order.
func solverJudge(members ...[3]float64) rl.Group {
	g := rl.Group{}
	for i, rewards := range members {
		m := rl.Member{Index: i}
		for j, key := range []string{"solver 1", "solver 2", "judge"} {
			m.Trajectories = append(m.Trajectories, rl.Trajectory{Role: []string{"solver", "solver", "judge"}[j], Key: key,
				Reward: rewards[j]})
			m.Reward += rewards[j]
		}
		g.Members = append(g.Members, m)
	}
	return g
}

var (
	right    = map[string]float64{MetricCorrect: 1, MetricAnswered: 1, MetricTruncated: 0}
	wrong    = map[string]float64{MetricCorrect: 0, MetricAnswered: 1, MetricTruncated: 0}
	silent   = map[string]float64{MetricCorrect: 0, MetricAnswered: 0, MetricTruncated: 0}
	cutShort = map[string]float64{MetricCorrect: 0, MetricAnswered: 0, MetricTruncated: 1}
)

func exampleBatch() []rl.Group {
	chat := rl.Member{
		Reward: 0.75, Turns: 3, PromptTokens: 100, SampledTokens: 20, StopReason: "turns",
		Trajectories: []rl.Trajectory{{Reward: 0.75, Segments: make([]rl.Segment, 2)}},
		Metrics:      map[string]float64{"format": 0.5, "broken": math.NaN()}, Parts: map[string]float64{"style": 0.25},
	}
	quiet := chat
	quiet.Index, quiet.Metrics, quiet.Parts = 1, nil, map[string]float64{"style": 0.75}
	return []rl.Group{
		{Environment: "sums", PromptTokens: 40, SampledTokens: 16, Members: []rl.Member{
			answered(0, 1, right), answered(1, 0, wrong), answered(2, 0, silent), answered(3, 0, cutShort)}},
		{Environment: "sums", Outcome: rl.Constant, Members: []rl.Member{answered(0, 0, wrong), answered(1, 0, wrong)}},
		{Environment: "chat", Members: []rl.Member{chat, quiet, {Index: 2, Outcome: rl.JudgeFault, Retries: 3}}},
		{Environment: "chat", Outcome: rl.Deadline, Members: []rl.Member{{Outcome: rl.Deadline}}},
		{Environment: "sums", Outcome: rl.BelowFloor, Members: []rl.Member{answered(0, 1, right),
			{Index: 1, Outcome: rl.EnvironmentFault, Retries: 1}}},
	}
}

func TestStepMetricsOfAllEnvironments(t *testing.T) {
	got := StepMetrics(exampleBatch())
	want := map[string]float64{
		"env/all/total_episodes": 8, "env/all/total_turns": 12, "env/all/total_ac_tokens": 64, "env/all/total_ob_tokens": 260,
		"env/all/ac_tokens_per_turn": 64.0 / 12, "env/all/ob_tokens_per_turn": 260.0 / 12, "env/all/turns_per_episode": 1.5,
		"env/all/segments_per_episode": 10.0 / 8, "env/all/reward/total": 2.5 / 8, "env/all/reward/style": 0.5,
		"env/all/by_group/frac_mixed": 1.0 / 3, "env/all/by_group/frac_all_good": 1.0 / 3,
		"env/all/by_group/frac_all_bad": 1.0 / 3,
		"env/all/correct":               1.0 / 6, "env/all/answered": 4.0 / 6, "env/all/truncated": 1.0 / 6,
		"env/all/format":         0.5,
		"env/all/answer/correct": 1.0 / 6, "env/all/answer/wrong": 3.0 / 6, "env/all/answer/none": 1.0 / 6,
		"env/all/answer/truncated": 1.0 / 6,
		"env/all/stop/stop":        6.0 / 8, "env/all/stop/turns": 2.0 / 8,
		"env/all/fault_ratio": 2.0 / 12, "env/all/deadline_ratio": 1.0 / 12,
		"batch/groups": 5, "batch/groups_usable": 2, "batch/groups_constant": 1, "batch/groups_below_floor": 1,
		"batch/groups_deadline": 1, "batch/groups_environment_fault": 0, "batch/groups_judge_fault": 0,
		"batch/groups_invalid_tokens": 0,
		"batch/members":               12, "batch/members_left_out": 3, "batch/retries": 4, "batch/prompt_tokens": 40,
		"batch/sampled_tokens": 16,
	}
	ofAll := map[string]float64{}
	for name, v := range got {
		if _, environment := cutEnvironment(name); !environment {
			ofAll[name] = v
		}
	}
	if diff := cmp.Diff(want, ofAll, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

// TestMetricsHaveDescriptions checks that the table has a row for each metric of a step, so that docs/metrics.md has
// it too.
func TestMetricsHaveDescriptions(t *testing.T) {
	for name := range StepMetrics(exampleBatch()) {
		if _, described := metric.Describe(name); !described {
			t.Errorf("metric %q has no description: add it to internal/metric/table.go and run make manifests", name)
		}
	}
}

// cutEnvironment reports whether a metric belongs to one of the example's environments.
func cutEnvironment(name string) (string, bool) {
	for _, prefix := range []string{"env/sums/", "env/chat/"} {
		if len(name) > len(prefix) && name[:len(prefix)] == prefix {
			return name[len(prefix):], true
		}
	}
	return name, false
}

func TestStepMetricsOfOneEnvironment(t *testing.T) {
	got := StepMetrics(exampleBatch())
	want := map[string]float64{
		"env/sums/reward/total": 1.0 / 6, "env/chat/reward/total": 0.75,
		"env/sums/by_group/frac_mixed": 0.5, "env/chat/by_group/frac_mixed": 0,
		"env/sums/fault_ratio": 1.0 / 8, "env/chat/fault_ratio": 1.0 / 4,
		"env/chat/segments_per_episode": 2, "env/sums/segments_per_episode": 1,
	}
	for name, v := range want {
		if math.Abs(got[name]-v) > 1e-12 {
			t.Errorf("%s = %v, want %v", name, got[name], v)
		}
	}
	if v, ok := got["env/chat/correct"]; ok {
		t.Errorf("env/chat/correct = %v, though no episode of it has it", v)
	}
}

// TestStopsCountEpisodesThatALimitLeftOut checks that episodes that a limit left out count among the stop reasons,
// even if they are the reason why their groups are left out.
func TestStopsCountEpisodesThatALimitLeftOut(t *testing.T) {
	late := func(index int, limit string) rl.Member {
		return rl.Member{Index: index, Outcome: rl.Deadline, StopReason: limit}
	}
	fault := rl.Member{Index: 3, Outcome: rl.EnvironmentFault}
	got := StepMetrics([]rl.Group{
		{Environment: "sums", Members: []rl.Member{answered(0, 1, right), answered(1, 0, wrong), late(2, "turns"), fault}},
		{Environment: "sums", Outcome: rl.Deadline, Members: []rl.Member{late(0, "turns"), late(1, "tool_calls")}},
		{Environment: "late", Outcome: rl.Deadline, Members: []rl.Member{late(0, "episode_seconds")}},
	})
	want := map[string]float64{
		"env/sums/stop/stop": 2.0 / 5, "env/sums/stop/turns": 2.0 / 5, "env/sums/stop/tool_calls": 1.0 / 5,
		"env/late/stop/episode_seconds": 1, "env/sums/total_episodes": 2, "env/sums/deadline_ratio": 3.0 / 6,
	}
	for name, v := range want {
		if value, ok := got[name]; !ok || math.Abs(value-v) > 1e-12 {
			t.Errorf("%s = %v, want %v", name, value, v)
		}
	}
}

func TestStepMetricsOfNothing(t *testing.T) {
	for name, groups := range map[string][]rl.Group{"no group": nil,
		"a tombstone": {{Environment: "sums", Outcome: rl.EnvironmentFault}}} {
		got := StepMetrics(groups)
		if _, ok := got["env/all/reward/total"]; ok {
			t.Errorf("%s: there is a mean reward without an episode", name)
		}
		if _, diverged := Finite(got); diverged {
			t.Errorf("%s: a metric is not finite: %v", name, got)
		}
	}
}

func TestAnswerWithoutWordOfAnAnswer(t *testing.T) {
	cases := map[string]struct {
		metrics map[string]float64
		want    string
	}{
		"nothing is said":       {nil, ""},
		"only that it is wrong": {map[string]float64{MetricCorrect: 0}, "wrong"},
		"wrong and cut":         {map[string]float64{MetricCorrect: 0, MetricTruncated: 1}, "truncated"},
		"answered wrongly, then cut": {map[string]float64{MetricCorrect: 0, MetricAnswered: 1, MetricTruncated: 1},
			"wrong"},
		"right, though cut afterwards":   {map[string]float64{MetricCorrect: 1, MetricTruncated: 1}, "correct"},
		"no answer in a complete reply":  {silent, "none"},
		"no answer in a reply cut short": {cutShort, "truncated"},
	}
	for name, tc := range cases {
		if got := answerOf(rl.Member{Metrics: tc.metrics}); got != tc.want {
			t.Errorf("%s: answer = %q, want %q", name, got, tc.want)
		}
	}
}

func TestFinite(t *testing.T) {
	got, diverged := Finite(map[string]float64{"a": 1, "b": math.NaN(), "c": math.Inf(-1)})
	if diff := cmp.Diff(map[string]float64{"a": 1}, got); diff != "" || !diverged {
		t.Errorf("Finite: diverged %v (-want +got):\n%s", diverged, diff)
	}
}

func TestProgressMetrics(t *testing.T) {
	want := map[string]float64{"progress/batch": 4, "progress/done_frac": 0.5}
	if diff := cmp.Diff(want, ProgressMetrics(4, 10)); diff != "" {
		t.Errorf("ProgressMetrics (-want +got):\n%s", diff)
	}
}

func TestStepMetricsOfRoles(t *testing.T) {
	first, second := solverJudge([3]float64{1, 0, 1}, [3]float64{1, 1, 0}), solverJudge([3]float64{0, 0, 0})
	first.Environment, second.Environment = "debate", "debate"
	first.Members[0].Trajectories[0].StopReason, first.Members[0].Trajectories[1].StopReason = "stop", "length"
	first.Members[0].Trajectories[0].Segments = make([]rl.Segment, 3)
	second = second.Tombstone(rl.Constant, "equal")
	plain := rewarded(1, 0)
	plain.Environment = "sums"
	got := map[string]float64{}
	for name, value := range StepMetrics([]rl.Group{first, second, plain, {Environment: "debate", Outcome: rl.Deadline}}) {
		if strings.Contains(name, "/solver/") || strings.Contains(name, "/judge/") {
			got[name] = value
		}
	}
	want := map[string]float64{}
	for _, environment := range []string{"all", "debate"} {
		solver, judge := "env/"+environment+"/solver/", "env/"+environment+"/judge/"
		want[solver+"total_trajectories"], want[judge+"total_trajectories"] = 6, 3
		want[solver+"reward/total"], want[judge+"reward/total"] = 0.5, 1.0/3
		want[solver+"stop/stop"], want[solver+"stop/length"] = 1.0/6, 1.0/6
		want[solver+"segments_per_trajectory"] = 3
		for _, prefix := range []string{solver, judge} {
			want[prefix+"by_group/frac_mixed"], want[prefix+"by_group/frac_all_good"],
				want[prefix+"by_group/frac_all_bad"] = 0.5, 0, 0.5
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Errorf("metrics of roles (-want +got):\n%s", diff)
	}
	for name := range StepMetrics([]rl.Group{plain}) {
		if strings.Count(name, "/") > 3 {
			t.Errorf("%s is a metric of a run without roles", name)
		}
	}
}
