// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// multiTurn returns an environment with so many turns, each worth 1. history returns the messages of the next prompt,
// given the messages before and the reply.
func multiTurn(turns int, history func(messages []chat.Message, reply chat.Message) []chat.Message) *scripted {
	var mu sync.Mutex
	var messages []chat.Message
	return &scripted{
		first: ask("q"),
		step: func(turn int, replies []environment.Reply) (environment.Turn, error) {
			mu.Lock()
			defer mu.Unlock()
			if turn == 0 {
				messages = ask("q")[0].Messages
			}
			out := environment.Turn{Rewards: []environment.Reward{{Value: 1}}, Done: turn == turns-1, ToolCalls: 1}
			messages = append(history(messages, replies[0].Message), chat.Message{Role: "user", Content: "on"})
			if !out.Done {
				out.Prompts = []environment.Prompt{{Messages: slices.Clone(messages)}}
			}
			return out, nil
		},
		finish: func() (environment.Turn, error) {
			return environment.Turn{Rewards: []environment.Reward{{Value: 10}}, Done: true}, nil
		},
	}
}

func keep(messages []chat.Message, reply chat.Message) []chat.Message {
	return append(messages, reply)
}

// singleMember returns a game with one member.
func singleMember(change func(*contract.Environment)) Spec {
	return game(func(g *Spec) {
		g.GroupSize, g.MinMembers = 1, 1
		if change != nil {
			change(&g.Settings)
		}
	})
}

func TestTurnsBecomeOneSegment(t *testing.T) {
	// The reply has blanks that parsing drops: only the sampled ids extend the ids that the policy saw.
	group := play(t, multiTurn(2, keep), says("  yes "), singleMember(nil))
	prompt, reply, next := "User: q\n\nAssistant:", "  yes ", "\n\nUser: on\n\nAssistant:"
	want := rl.Segment{Tokens: slices.Concat(bytesOf(prompt+reply), []int32{end}, bytesOf(next+reply), []int32{end})}
	for _, part := range []struct {
		tokens int
		action bool
	}{{len(prompt), false}, {len(reply) + 1, true}, {len(next), false}, {len(reply) + 1, true}} {
		for i := range part.tokens {
			want.Actions = append(want.Actions, part.action)
			logprob := float32(0)
			if part.action {
				logprob = -float32(i+1) / 8
			}
			want.Logprobs = append(want.Logprobs, logprob)
		}
	}
	if diff := cmp.Diff([]rl.Segment{want}, group.Members[0].Trajectories[0].Segments); diff != "" {
		t.Errorf("segments (-want +got):\n%s", diff)
	}
	if m := group.Members[0]; m.Turns != 2 || m.Reward != 2 || m.SampledTokens != 14 || m.PromptTokens != 19+48 {
		t.Errorf("%d turns, reward %v, %d + %d tokens", m.Turns, m.Reward, m.PromptTokens, m.SampledTokens)
	}
}

func TestRewrittenHistoryBeginsASegment(t *testing.T) {
	shout := func(messages []chat.Message, reply chat.Message) []chat.Message {
		reply.Content += "!"
		return append(messages, reply)
	}
	group := play(t, multiTurn(3, shout), says(" yes"), singleMember(nil))
	var turns []int
	for _, s := range group.Members[0].Trajectories[0].Segments {
		turns = append(turns, s.Turn)
	}
	if diff := cmp.Diff([]int{0, 1, 2}, turns); diff != "" {
		t.Errorf("turns that segments begin with (-want +got):\n%s", diff)
	}
}

func TestRolesAndNumbersOfRequests(t *testing.T) {
	solvers := []environment.Prompt{
		{Role: "solver", Conversation: "solver-0", Messages: ask("solve")[0].Messages},
		{Role: "solver", Conversation: "solver-1", Messages: ask("solve")[0].Messages},
	}
	env := &scripted{first: solvers, step: func(turn int, replies []environment.Reply) (environment.Turn, error) {
		if turn == 1 {
			return environment.Turn{Done: true, Rewards: []environment.Reward{{Conversation: "judge", Value: 1,
				Parts: map[string]float64{"judge": 1}}}}, nil
		}
		if replies[0].Conversation != "solver-0" || replies[1].Conversation != "solver-1" || replies[1].Role != "solver" {
			return environment.Turn{}, fmt.Errorf("replies are in disorder: %+v", replies)
		}
		return environment.Turn{
			Rewards: []environment.Reward{{Conversation: "solver-0", Value: 0.5, Parts: map[string]float64{"solver": 0.25}},
				{Conversation: "solver-1", Value: 0.25, Parts: map[string]float64{"solver": 0.5}}},
			Metrics: map[string]float64{"solver_acc": 0.5},
			Prompts: []environment.Prompt{{Role: "judge", Conversation: "judge", Messages: ask("judge")[0].Messages}},
		}, nil
	}}
	var mu sync.Mutex
	var asked []string
	policy := policyFunc(func(_ context.Context, request Request) (Sample, error) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, member(request))
		return sampled(fmt.Sprint(request.Conversation)), nil
	})
	m := play(t, env, policy, singleMember(nil)).Members[0]
	slices.Sort(asked)
	if diff := cmp.Diff([]string{"judge 0/0/0", "solver-0 0/0/0", "solver-1 0/0/0"}, asked); diff != "" {
		t.Errorf("member/request/try (-want +got):\n%s", diff)
	}
	var roles []string
	for _, trajectory := range m.Trajectories {
		for _, s := range trajectory.Segments {
			roles = append(roles, fmt.Sprintf("%s@%d", trajectory.Role, s.Turn))
		}
	}
	if diff := cmp.Diff([]string{"judge@0", "solver@0", "solver@0"}, roles); diff != "" {
		t.Errorf("segments (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]float64{"solver": 0.75, "judge": 1}, m.Parts); diff != "" || m.Reward != 1.75 ||
		m.Turns != 3 {
		t.Errorf("reward %v of %d turns, parts (-want +got):\n%s", m.Reward, m.Turns, diff)
	}
	if diff := cmp.Diff(map[string]float64{"solver_acc": 0.5}, m.Metrics); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

// TestLimits plays a chat of 5 turns. Its prompts have 19, 45, 71, ... tokens, and its replies have 4.
func TestLimits(t *testing.T) {
	cases := map[string]struct {
		limits  playing.Limits
		stop    string
		turns   int
		reward  float64
		outcome rl.Outcome
	}{
		"none":                       {stop: "stop", turns: 5, reward: 5},
		"turns":                      {limits: playing.Limits{Turns: 3}, stop: "turns", turns: 3, reward: 13},
		"turns that are just enough": {limits: playing.Limits{Turns: 5}, stop: "stop", turns: 5, reward: 5},
		"calls of tools":             {limits: playing.Limits{ToolCalls: 2}, stop: "tool_calls", turns: 2, reward: 12},
		"the first prompt's tokens": {limits: playing.Limits{PromptTokens: 18}, stop: "prompt_tokens", turns: 0,
			reward: 10},
		"later prompts may be longer": {limits: playing.Limits{PromptTokens: 19}, stop: "stop", turns: 5, reward: 5},
		"tokens of the trajectory": {limits: playing.Limits{TrajectoryTokens: 65}, stop: "trajectory_tokens",
			turns: 2, reward: 12},
		"tokens that a prompt uses up": {limits: playing.Limits{TrajectoryTokens: 45}, stop: "trajectory_tokens",
			turns: 1, reward: 11},
		"Zero gives no more than nothing": {limits: playing.Limits{Turns: 3, OnLimit: "Zero"}, stop: "turns", turns: 3,
			reward: 0},
		"Exclude leaves the episode out": {limits: playing.Limits{Turns: 3, OnLimit: "Exclude"}, stop: "turns", turns: 3,
			outcome: rl.Deadline},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			group := play(t, multiTurn(5, keep), says("yes"),
				singleMember(func(s *contract.Environment) { s.Limits = tc.limits }))
			m := group.Members[0]
			if m.StopReason != tc.stop || m.Turns != tc.turns || m.Reward != tc.reward || m.Outcome != tc.outcome ||
				group.Outcome != tc.outcome {
				t.Errorf("%v after %d turns by %s with reward %v, group %v, want %v after %d by %s with %v",
					m.Outcome, m.Turns, m.StopReason, m.Reward, group.Outcome, tc.outcome, tc.turns, tc.stop, tc.reward)
			}
		})
	}
}

// TestRowsWhosePromptIsTooLongAreLeftOut checks that such rows are scored under no setting, since the policy was never
// asked.
func TestRowsWhosePromptIsTooLongAreLeftOut(t *testing.T) {
	for _, onLimit := range []playing.LimitPolicy{playing.LimitGrade, playing.LimitZero, playing.LimitExclude} {
		t.Run(string(onLimit), func(t *testing.T) {
			limits := playing.Limits{PromptTokens: 18, OnLimit: onLimit}
			group := play(t, &scripted{}, says("yes"), singleMember(func(s *contract.Environment) { s.Limits = limits }))
			if m := group.Members[0]; m.StopReason != "prompt_tokens" || m.Turns != 0 || m.Outcome != rl.Deadline ||
				group.Outcome != rl.Deadline {
				t.Errorf("the member is %v with reward %v by %s, and the group %v: want both left out", m.Outcome, m.Reward,
					m.StopReason, group.Outcome)
			}
		})
	}
}

func TestTrajectoryTokensShortenTheReply(t *testing.T) {
	var most []int
	policy := policyFunc(func(_ context.Context, request Request) (Sample, error) {
		most = append(most, int(request.Sampling.MaxTokens))
		return sampled("yes"), nil
	})
	play(t, multiTurn(3, keep), policy, singleMember(func(s *contract.Environment) { s.Limits.TrajectoryTokens = 76 }))
	if diff := cmp.Diff([]int{16, 16, 5}, most); diff != "" {
		t.Errorf("tokens that were asked for (-want +got):\n%s", diff)
	}
}

func TestEpisodeSeconds(t *testing.T) {
	slow := func(d time.Duration) policyFunc {
		return func(ctx context.Context, _ Request) (Sample, error) {
			if err := wait.Sleep(ctx, d); err != nil {
				return Sample{}, err
			}
			sample := sampled("yes")
			sample.Took = d
			return sample, nil
		}
	}
	cases := map[string]struct {
		policy  Policy
		onLimit playing.LimitPolicy
		stop    string
		turns   int
		reward  float64
		outcome rl.Outcome
	}{
		"an episode in time":      {policy: slow(time.Second), stop: "stop", turns: 5, reward: 5},
		"one that takes too long": {policy: slow(4 * time.Second), stop: "episode_seconds", turns: 2, reward: 12},
		"one that is left out for it": {policy: slow(4 * time.Second), onLimit: "Exclude", stop: "episode_seconds",
			turns: 2, outcome: rl.Deadline},
		"a first reply that takes too long": {policy: slow(time.Hour), stop: "episode_seconds", reward: 10},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				group := play(t, multiTurn(5, keep), tc.policy, singleMember(func(s *contract.Environment) {
					s.Limits = playing.Limits{EpisodeSeconds: 10, OnLimit: tc.onLimit}
				}))
				m := group.Members[0]
				if m.StopReason != tc.stop || m.Turns != tc.turns || m.Reward != tc.reward || m.Outcome != tc.outcome {
					t.Errorf("%v after %d turns by %s with reward %v, want %v after %d by %s with %v",
						m.Outcome, m.Turns, m.StopReason, m.Reward, tc.outcome, tc.turns, tc.stop, tc.reward)
				}
			})
		})
	}
}

func TestHowRepliesEnd(t *testing.T) {
	cases := map[string]struct {
		sample Sample
		stops  []string
		stop   string
		want   environment.Reply
	}{
		"by the stop": {
			sample: sampled(" yes"), stop: "stop",
			want: environment.Reply{Message: chat.Message{Role: "assistant", Content: "yes"}},
		},
		"by the limit of tokens": {
			sample: Sample{Tokens: bytesOf(" ye"), Logprobs: make([]float32, 3)}, stop: "length",
			want: environment.Reply{Message: chat.Message{Role: "assistant", Content: "ye"}, Truncated: true},
		},
		"by a stop of the run's own": {
			sample: Sample{Tokens: bytesOf(" yes\nUser:"), Logprobs: make([]float32, 10), Stopped: true},
			stops:  []string{"\nUser:"}, stop: "stop",
			want: environment.Reply{Message: chat.Message{Role: "assistant", Content: "yes"}},
		},
		"in disorder": {
			sample: Sample{Tokens: []int32{'y', end, end}, Logprobs: make([]float32, 3), Stopped: true}, stop: "malformed",
			want: environment.Reply{Message: chat.Message{Role: "assistant", Content: "y"},
				Malformed: "the reply continues after <|end|>"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got environment.Reply
			env := &scripted{step: func(_ int, replies []environment.Reply) (environment.Turn, error) {
				got = replies[0]
				return done(1), nil
			}}
			policy := policyFunc(func(_ context.Context, request Request) (Sample, error) {
				if (len(request.Stop.Tokens) > 0) == (len(tc.stops) > 0) || !slices.Equal(request.Stop.Strings, tc.stops) {
					return Sample{}, fmt.Errorf("stop is %+v", request.Stop)
				}
				return tc.sample, nil
			})
			group := play(t, env, policy, singleMember(func(s *contract.Environment) { s.Sampling.Stop = tc.stops }))
			tc.want.Message.Reply = 1
			tc.want.Usage = environment.Usage{Turns: 1, SampledTokens: len(tc.sample.Tokens)}
			tc.want.Seed = got.Seed
			if diff := cmp.Diff(tc.want, got); diff != "" || group.Members[0].StopReason != tc.stop {
				t.Errorf("stop reason %s, reply (-want +got):\n%s", group.Members[0].StopReason, diff)
			}
		})
	}
}

// TestUsageOfLaterReplies counts the usage of all earlier replies.
func TestUsageOfLaterReplies(t *testing.T) {
	var got []environment.Usage
	env := &scripted{step: func(turn int, replies []environment.Reply) (environment.Turn, error) {
		got = append(got, replies[0].Usage)
		if turn == 2 {
			return done(1), nil
		}
		return environment.Turn{ToolCalls: 2, Prompts: ask("q", "yes", "again")}, nil
	}}
	play(t, env, says("yes"), singleMember(func(*contract.Environment) {}))
	each := len(sampled("yes").Tokens)
	want := []environment.Usage{
		{Turns: 1, SampledTokens: each}, {Turns: 2, ToolCalls: 2, SampledTokens: 2 * each},
		{Turns: 3, ToolCalls: 4, SampledTokens: 3 * each},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Usage (-want +got):\n%s", diff)
	}
}

func TestAnEmptyReplyTrainsNothing(t *testing.T) {
	env := &scripted{step: func(int, []environment.Reply) (environment.Turn, error) { return done(1), nil }}
	policy := policyFunc(func(context.Context, Request) (Sample, error) { return Sample{}, nil })
	m := play(t, env, policy, singleMember(nil)).Members[0]
	if m.Outcome != rl.Usable || len(segmentsOf(m)) != 0 || m.StopReason != "length" {
		t.Errorf("outcome %v, stop reason %s, %d segments", m.Outcome, m.StopReason, len(segmentsOf(m)))
	}
}

func TestInvalidTurnsOfEnvironments(t *testing.T) {
	turns := map[string]environment.Turn{
		"end without a reward": {Done: true},
		"neither ask nor end":  {},
		"reward of NaN":        {Done: true, Rewards: []environment.Reward{{Value: math.NaN()}}},
		"infinite metric": {Done: true, Rewards: []environment.Reward{{Value: 1}},
			Metrics: map[string]float64{"m": math.Inf(1)}},
		"tools without a format": {Prompts: []environment.Prompt{{Tools: []chat.Tool{{Name: "add"}}}}},
	}
	for name, turn := range turns {
		t.Run(name, func(t *testing.T) {
			env := &scripted{step: func(int, []environment.Reply) (environment.Turn, error) { return turn, nil }}
			if group := play(t, env, says("1"), game(nil)); group.Outcome != rl.EnvironmentFault {
				t.Errorf("outcome %v, want the environment's fault", group.Outcome)
			}
		})
	}
}

func TestFaultOfFinish(t *testing.T) {
	env := multiTurn(5, keep)
	env.finish = func() (environment.Turn, error) {
		return environment.Turn{}, &environment.Fault{Kind: environment.JudgeFault, Err: errors.New("asleep")}
	}
	group := play(t, env, says("yes"), singleMember(func(s *contract.Environment) { s.Limits.Turns = 1 }))
	if group.Outcome != rl.JudgeFault {
		t.Errorf("outcome %v, want the judge's fault", group.Outcome)
	}
}
