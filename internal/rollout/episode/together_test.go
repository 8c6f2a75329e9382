// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// together is an environment that scores groups.
type together struct {
	*scripted
	// grade scores the texts of a group; n counts its calls.
	grade func(n int, texts []string) ([]environment.Turn, error)
	calls [][]string
}

func (e *together) GradeGroup(_ context.Context, _ environment.Task,
	replies []environment.Reply) ([]environment.Turn, error) {
	var texts []string
	for _, reply := range replies {
		texts = append(texts, reply.Message.Content)
	}
	e.calls = append(e.calls, texts)
	return e.grade(len(e.calls), texts)
}

// ungraded ends an episode without a reward of its own. The reply "broken" is a fault.
func ungraded(_ int, replies []environment.Reply) (environment.Turn, error) {
	if replies[0].Message.Content == "broken" {
		return environment.Turn{}, &environment.Fault{Permanent: true, Err: errors.New("no reply to score")}
	}
	return environment.Turn{Ungraded: &replies[0], Done: true}, nil
}

// ranks returns turns that reward each reply with ten times its number.
func ranks(_ int, texts []string) ([]environment.Turn, error) {
	var turns []environment.Turn
	for i := range texts {
		turns = append(turns, environment.Turn{Rewards: []environment.Reward{{Value: float64(10 * i)}},
			Metrics: map[string]float64{"rank": float64(i)}})
	}
	return turns, nil
}

// memberSays returns a policy with one text for each member.
func memberSays(texts ...string) policyFunc {
	return func(_ context.Context, request Request) (Sample, error) { return sampled(texts[request.Member]), nil }
}

// TestGroupsAreScoredTogether checks that the usable members are scored in the order of their indexes once all have
// ended, and that the run's rules for rewards are applied afterwards.
func TestGroupsAreScoredTogether(t *testing.T) {
	failure := &environment.Fault{Permanent: true, Err: errors.New("user_code.py:2: ValueError")}
	scores := func(rewards ...float64) []outcome {
		var all []outcome
		for _, reward := range rewards {
			all = append(all, outcome{rl.Usable, reward})
		}
		return all
	}
	fault := outcome{Outcome: rl.EnvironmentFault}
	cases := map[string]struct {
		texts []string
		grade func(n int, texts []string) ([]environment.Turn, error)
		rule  playing.EpisodeReward
		want  []outcome
		calls int
		// tombstone is the outcome of the group.
		tombstone rl.Outcome
	}{
		"all members": {texts: []string{"a", "b", "c"}, grade: ranks, want: scores(0, 10, 20), calls: 1},
		"a member is broken": {texts: []string{"a", "broken", "c"}, grade: ranks,
			want: []outcome{{rl.Usable, 0}, fault, {rl.Usable, 10}}, calls: 1},
		"the run's bounds": {texts: []string{"a", "b", "c"}, grade: ranks, rule: playing.EpisodeReward{Max: new(15.0)},
			want: scores(0, 10, 15), calls: 1},
		"a failure that passes": {texts: []string{"a", "b"}, want: scores(0, 10), calls: 2,
			grade: func(n int, texts []string) ([]environment.Turn, error) {
				if n == 1 {
					return nil, failure
				}
				return ranks(n, texts)
			}},
		"a failure": {texts: []string{"a", "b"}, calls: 2, tombstone: rl.EnvironmentFault,
			grade: func(int, []string) ([]environment.Turn, error) { return nil, failure }},
		"too few scores": {texts: []string{"a", "b"}, calls: 2, tombstone: rl.EnvironmentFault,
			grade: func(n int, texts []string) ([]environment.Turn, error) { return ranks(n, texts[1:]) }},
		"a member without a score": {texts: []string{"a", "b", "c"}, calls: 1, want: []outcome{{rl.Usable, 0}, fault,
			{rl.Usable, 20}},
			grade: func(n int, texts []string) ([]environment.Turn, error) {
				turns, err := ranks(n, texts)
				turns[1].Rewards = nil
				return turns, err
			}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			env := &together{scripted: &scripted{step: ungraded}, grade: tc.grade}
			tc.rule.Reduction = playing.ReductionSum
			group := play(t, env, memberSays(tc.texts...), game(func(g *Spec) {
				g.GroupSize, g.Settings.Reward = len(tc.texts), tc.rule
			}))
			if len(env.calls) != tc.calls {
				t.Errorf("the group was scored %d times, want %d", len(env.calls), tc.calls)
			}
			if group.Outcome != tc.tombstone {
				t.Fatalf("the group is %v: %s, want %v", group.Outcome, group.Reason, tc.tombstone)
			}
			if tc.tombstone != rl.Usable {
				return
			}
			var got []outcome
			for _, m := range group.Members {
				got = append(got, outcome{m.Outcome, m.Reward})
				if m.Outcome == rl.Usable && (len(segmentsOf(m)) != 1 || m.Trajectories[0].Reward != m.Reward ||
					m.SampledTokens == 0 || m.StopReason != stopStop) {
					t.Errorf("member %d lacks its turns: %+v", m.Index, m)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("members (-want +got):\n%s", diff)
			}
		})
	}
}

// outcome is the outcome of a member.
type outcome struct {
	Outcome rl.Outcome
	Reward  float64
}
