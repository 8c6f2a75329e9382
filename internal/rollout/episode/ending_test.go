// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/ors"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// callOf is a call in the format of Qwen3.
func callOf(tool, arguments string) string {
	return fmt.Sprintf("<tool_call>\n{\"name\": %q, \"arguments\": %s}\n</tool_call>", tool, arguments)
}

// TestEndingsOfEpisodesOnAServer plays episodes of several turns, and checks what ended each of them: a tool's result
// of the environment (finished), a reply of the policy (stop, malformed), a limit (its name), or a fault.
func TestEndingsOfEpisodesOnAServer(t *testing.T) {
	const broken = "<tool_call>\n{\"name\": \"look\", \"arguments\"\n</tool_call>"
	look, crash, submit, nothing := callOf("look", "{}"), callOf("crash", "{}"), callOf("submit", `{"answer": "3"}`),
		callOf("submit", "{}")
	answerTool := ors.Options{AnswerTool: &environment.AnswerTool{Name: "submit", Argument: "answer"}}
	nonterminal := func(e *contract.Environment) { e.Reward.Nonterminal = new(-0.5) }
	limits := func(limits playing.Limits) func(*contract.Environment) {
		return func(e *contract.Environment) {
			nonterminal(e)
			e.Limits = limits
		}
	}
	type result struct {
		Stop    string
		Outcome rl.Outcome
		Reward  float64
		// Turns, Calls and Retries belong to the member, and Faults is the number that the breaker counts.
		Turns, Calls, Retries, Faults int
	}
	cases := map[string]struct {
		options ors.Options
		replies []string
		breaks  map[int]breakAt
		change  func(*contract.Environment)
		want    result
		// runs are the tools that ran, and reason is a part of the group's reason.
		runs   []string
		reason string
	}{
		"the environment ends it in turn 3": {
			replies: []string{look, look, submit}, change: nonterminal,
			want: result{Stop: "finished", Reward: 1, Turns: 3, Calls: 3},
			runs: []string{"session-1 look", "session-1 look", "session-1 submit"},
		},
		"the environment ends it with a call of two": {
			replies: []string{look, submit + "\n" + look}, want: result{Stop: "finished", Reward: 1, Turns: 2, Calls: 2},
			runs: []string{"session-1 look", "session-1 submit"},
		},
		"the environment ends it without a reward": {
			replies: []string{look, nothing}, change: nonterminal, want: result{Outcome: rl.EnvironmentFault, Faults: 1},
			runs: []string{"session-1 look", "session-1 submit"}, reason: "ended without a reward",
		},
		"the policy answers": {
			options: answerTool, replies: []string{look, look, "3"}, change: nonterminal,
			want: result{Stop: "stop", Reward: 1, Turns: 3, Calls: 2},
			runs: []string{"session-1 look", "session-1 look", "session-1 submit"},
		},
		"the policy breaks the format twice": {
			replies: []string{look, broken, broken}, change: nonterminal,
			want: result{Stop: "malformed", Reward: -0.5, Turns: 3, Calls: 1}, runs: []string{"session-1 look"},
		},
		"the policy breaks the format, and nothing is a reward": {
			replies: []string{look, broken, broken},
			want:    result{Stop: "malformed", Outcome: rl.Deadline, Turns: 3, Calls: 1}, runs: []string{"session-1 look"},
			reason: "the policy ended the episode by replies that break the format",
		},
		"the limit of tool calls is reached in turn 3": {
			replies: []string{look, look, look + "\n" + submit}, change: limits(playing.Limits{ToolCalls: 3}),
			want: result{Stop: "tool_calls", Reward: -0.5, Turns: 3, Calls: 3},
			runs: []string{"session-1 look", "session-1 look", "session-1 look"},
		},
		"the environment ends it with the last call of the limit": {
			replies: []string{look, look, submit}, change: limits(playing.Limits{ToolCalls: 3, Turns: 3}),
			want: result{Stop: "finished", Reward: 1, Turns: 3, Calls: 3},
			runs: []string{"session-1 look", "session-1 look", "session-1 submit"},
		},
		"the limit of turns is reached": {
			replies: []string{look, "Well.", look}, change: limits(playing.Limits{Turns: 3}),
			want: result{Stop: "turns", Reward: -0.5, Turns: 3, Calls: 2}, runs: []string{"session-1 look", "session-1 look"},
		},
		"a limit leaves it out": {
			replies: []string{look, look, look}, change: limits(playing.Limits{ToolCalls: 3, OnLimit: playing.LimitExclude}),
			want: result{Stop: "tool_calls", Outcome: rl.Deadline, Turns: 3, Calls: 3},
			runs: []string{"session-1 look", "session-1 look", "session-1 look"}, reason: "ended by the limit tool_calls",
		},
		"a tool raises in turn 2": {
			replies: []string{look, crash, submit}, change: nonterminal, want: result{Outcome: rl.EnvironmentFault, Faults: 1},
			runs:   []string{"session-1 look", "session-1 crash"},
			reason: `calling tool "crash": the server reports: division by zero`,
		},
		"a tool raises in turn 2, and the episode is played again": {
			replies: []string{look, crash, submit}, change: func(e *contract.Environment) { e.Retries = 1 },
			want: result{Stop: "finished", Reward: 1, Turns: 3, Calls: 3, Retries: 1, Faults: 1},
			runs: []string{"session-1 look", "session-1 crash", "session-4 look", "session-4 crash", "session-4 submit"},
		},
		"the connection breaks twice in turn 2": {
			replies: []string{look, look, submit}, breaks: map[int]breakAt{2: afterName, 3: afterName},
			want: result{Stop: "finished", Reward: 1, Turns: 3, Calls: 3},
			runs: []string{"session-1 look", "session-1 look", "session-1 submit"},
		},
		"the connection breaks in the call that ends it": {
			replies: []string{look, look, submit}, breaks: map[int]breakAt{3: afterName},
			change: limits(playing.Limits{ToolCalls: 3}),
			want:   result{Stop: "finished", Reward: 1, Turns: 3, Calls: 3},
			runs:   []string{"session-1 look", "session-1 look", "session-1 submit"},
		},
		"the connection breaks in turn 2 before the call has a name": {
			replies: []string{look, look, submit}, breaks: map[int]breakAt{2: beforeName},
			change: func(e *contract.Environment) { e.Retries = 1 },
			want:   result{Stop: "finished", Reward: 1, Turns: 3, Calls: 3, Retries: 1, Faults: 1},
			runs:   []string{"session-1 look", "session-1 look", "session-4 look", "session-4 look", "session-4 submit"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newToolServer()
				server.breaks = tc.breaks
				m, reason, faults := playOnServer(t, server, tc.options, tc.replies, tc.change)
				got := result{
					Stop: m.StopReason, Outcome: m.Outcome, Reward: m.Reward, Turns: m.Turns, Calls: int(m.Metrics["tool_calls"]),
					Retries: m.Retries, Faults: faults,
				}
				if diff := cmp.Diff(tc.want, got); diff != "" || !strings.Contains(reason, tc.reason) {
					t.Errorf("the group's reason is %q; member (-want +got):\n%s", reason, diff)
				}
				for _, trajectory := range m.Trajectories {
					if trajectory.StopReason != tc.want.Stop {
						t.Errorf("the trajectory was ended by %q, the episode by %q", trajectory.StopReason, tc.want.Stop)
					}
				}
				if reconnects := m.Metrics[ors.MetricReconnects]; m.Outcome == rl.Usable && tc.breaks[2] != beforeName &&
					int(reconnects) != len(tc.breaks) {
					t.Errorf("%v reconnects are counted, want %d", reconnects, len(tc.breaks))
				}
				if diff := cmp.Diff(tc.runs, server.toolRuns()); diff != "" {
					t.Errorf("runs of tools (-want +got):\n%s", diff)
				}
			})
		})
	}
}
