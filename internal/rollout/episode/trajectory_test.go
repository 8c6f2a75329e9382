// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

func promptOf(role, conversation string) environment.Prompt {
	return environment.Prompt{Role: role, Conversation: conversation, Messages: ask("q")[0].Messages}
}

// solveAndJudge asks two solvers, then a judge, then the first solver and the judge again. rewards has the rewards of
// each turn.
func solveAndJudge(rewards ...[]environment.Reward) *scripted {
	solvers := []environment.Prompt{promptOf("solver", "solver 1"), promptOf("solver", "solver 2")}
	next := [][]environment.Prompt{{promptOf("judge", "judge")},
		{promptOf("solver", "solver 1"), promptOf("judge", "judge")}}
	return &scripted{
		first: solvers,
		step: func(turn int, _ []environment.Reply) (environment.Turn, error) {
			out := environment.Turn{Rewards: rewards[turn], Done: turn == len(next)}
			if !out.Done {
				out.Prompts = next[turn]
			}
			return out, nil
		},
		finish: func() (environment.Turn, error) { return environment.Turn{Done: true}, nil },
	}
}

func reward1(conversation string, value float64) environment.Reward {
	return environment.Reward{Conversation: conversation, Value: value}
}

// summary lists trajectories without their segments.
func summary(m rl.Member) []string {
	var list []string
	for _, t := range m.Trajectories {
		list = append(list, fmt.Sprintf("%s (%s) %v %v %s, %d segments", t.Key, t.Role, t.Reward, t.StepRewards, t.StopReason,
			len(t.Segments)))
	}
	return list
}

func TestRewardsKeepTheirConversation(t *testing.T) {
	rewards := [][]environment.Reward{
		{reward1("solver 1", 1), reward1("", 0.5)},
		{reward1("judge", 2), reward1("solver 2", 0)},
		{reward1("solver 1", 4), reward1("", 8), reward1("judge", 16)},
	}
	zero := 0.0
	cases := map[string]struct {
		change func(*contract.Environment)
		reward float64
		want   []string
	}{
		"a sum for each": {nil, 31.5, []string{
			"judge (judge) 26.5 [2.5 24] stop, 2 segments",
			"solver 1 (solver) 13.5 [1.5 12] stop, 2 segments", "solver 2 (solver) 8.5 [8.5] stop, 1 segments",
		}},
		"the last of each": {func(e *contract.Environment) { e.Reward.Reduction = playing.ReductionLast }, 16, []string{
			"judge (judge) 16 [2 16] stop, 2 segments",
			"solver 1 (solver) 8 [0.5 8] stop, 2 segments", "solver 2 (solver) 8 [8] stop, 1 segments",
		}},
		"a limit in the middle": {func(e *contract.Environment) {
			e.Limits.Turns, e.Reward.Nonterminal = 1,
				new(float64(-1))
		}, 2.5, []string{
			"judge (judge) 1.5 [1.5] turns, 1 segments",
			"solver 1 (solver) 0.5 [0.5] turns, 1 segments", "solver 2 (solver) -0.5 [-0.5] stop, 1 segments",
		}},
		"a limit that leaves nothing": {func(e *contract.Environment) {
			e.Limits.Requests, e.Limits.OnLimit, e.Reward.Min = 4, playing.LimitZero, &zero
		}, 0, []string{
			"judge (judge) 0 [0] requests, 1 segments",
			"solver 1 (solver) 0 [0] requests, 1 segments", "solver 2 (solver) 0 [0] stop, 1 segments",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := singleMember(tc.change)
			spec.StepRewards = true
			group := play(t, solveAndJudge(rewards...), says("yes"), spec)
			m := group.Members[0]
			if diff := cmp.Diff(tc.want, summary(m)); diff != "" || m.Reward != tc.reward {
				t.Errorf("reward %v, want %v; trajectories (-want +got):\n%s", m.Reward, tc.reward, diff)
			}
			if err := group.Validate(); err != nil {
				t.Errorf("Validate: %v", err)
			}
		})
	}
}

// TestStepsAreRecordedOnRequest checks that steps are not recorded unless they are compared.
func TestStepsAreRecordedOnRequest(t *testing.T) {
	m := play(t, solveAndJudge(nil, nil, []environment.Reward{reward1("", 1)}), says("yes"), singleMember(nil)).Members[0]
	for _, trajectory := range m.Trajectories {
		if trajectory.StepRewards != nil || trajectory.Segments[0].Steps != nil {
			t.Errorf("trajectory %s has steps", trajectory.Key)
		}
	}
}

// TestStepsOfASegment checks that each turn of a segment is a step of its own.
func TestStepsOfASegment(t *testing.T) {
	spec := singleMember(nil)
	spec.StepRewards = true
	m := play(t, multiTurn(2, keep), says("yes"), spec).Members[0]
	// Prompts have 19 and 45 tokens, replies 4.
	want := []rl.Step{{Index: 0, End: 23}, {Index: 1, End: 49}}
	if diff := cmp.Diff(want, m.Trajectories[0].Segments[0].Steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float64{1, 1}, m.Trajectories[0].StepRewards); diff != "" {
		t.Errorf("rewards of steps (-want +got):\n%s", diff)
	}
}

func TestInvalidTurnsOfEnvironmentsWithRoles(t *testing.T) {
	env := func(prompts ...environment.Prompt) *scripted {
		return &scripted{first: prompts, step: func(int, []environment.Reply) (environment.Turn, error) {
			return done(1),
				nil
		}}
	}
	changed := env(promptOf("solver", "a"))
	changed.step = func(int, []environment.Reply) (environment.Turn, error) {
		return environment.Turn{Prompts: []environment.Prompt{promptOf("judge", "a")}}, nil
	}
	cases := map[string]*scripted{
		"leave a conversation without a reward": solveAndJudge([]environment.Reward{reward1("solver 1", 1)}, nil,
			[]environment.Reward{reward1("judge", 1)}),
		"reward an unknown conversation":    solveAndJudge([]environment.Reward{reward1("solver 3", 1)}, nil, nil),
		"change the role of a conversation": changed,
		"ask twice in one conversation":     env(promptOf("solver", "a"), promptOf("solver", "a")),
		"ask for a role with another name":  env(promptOf("Solver 1", "a")),
		"give one of several no key":        env(promptOf("solver", ""), promptOf("solver", "a")),
	}
	for name, env := range cases {
		t.Run(name, func(t *testing.T) {
			if group := play(t, env, says("1"), game(nil)); group.Outcome != rl.EnvironmentFault {
				t.Errorf("outcome %v, want the environment's fault", group.Outcome)
			}
		})
	}
}

// TestConversationsWithoutAReply checks that a conversation that a limit ended before its first reply is not a
// trajectory, unless no conversation has a reply.
func TestConversationsWithoutAReply(t *testing.T) {
	rewarded := solveAndJudge([]environment.Reward{reward1("", 1)}, nil, nil)
	m := play(t, rewarded, says("yes"), singleMember(func(e *contract.Environment) { e.Limits.Requests = 2 })).Members[0]
	want := []string{"solver 1 (solver) 1 [] stop, 1 segments", "solver 2 (solver) 1 [] stop, 1 segments"}
	if diff := cmp.Diff(want, summary(m)); diff != "" {
		t.Errorf("trajectories (-want +got):\n%s", diff)
	}
	m = play(t, rewarded, says("yes"), singleMember(func(e *contract.Environment) {
		e.Limits.PromptTokens, e.Reward.Nonterminal = 1, new(float64(-1))
	})).Members[0]
	want = []string{"solver 1 (solver) -1 [] prompt_tokens, 0 segments",
		"solver 2 (solver) -1 [] prompt_tokens, 0 segments"}
	if diff := cmp.Diff(want, summary(m)); diff != "" {
		t.Errorf("trajectories without a reply (-want +got):\n%s", diff)
	}
}
