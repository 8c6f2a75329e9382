// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// causesOf counts the causes in the transcript of a member, by the names of their metrics.
func causesOf(m rl.Member) map[string]float64 {
	causes := map[string]float64{"branches": float64(len(m.Trajectories))}
	for _, c := range transcript.FromGroup(rl.Group{Members: []rl.Member{m}}).Episodes[0].Conversations {
		if c.PrefixBroken != "" {
			causes["prefix_broken_"+c.PrefixBroken]++
		}
		for _, message := range c.Messages {
			if message.PrefixBroken != "" {
				causes["prefix_broken_"+message.PrefixBroken]++
			}
		}
	}
	return causes
}

// TestTranscriptsHaveTheCausesOfBranches plays an agent with branches, and checks that each branch has its cause in
// the transcript, and that the metrics count the same causes.
func TestTranscriptsHaveTheCausesOfBranches(t *testing.T) {
	spec := singleMember(nil)
	spec.Transcript = true
	m := play(t, agentOf(team), &seeded{}, spec).Members[0]
	if diff := cmp.Diff(m.Metrics, causesOf(m)); diff != "" || len(m.Metrics) != 5 {
		t.Errorf("causes (-metrics +transcript):\n%s", diff)
	}
	for _, c := range transcript.FromGroup(rl.Group{Members: []rl.Member{m}}).Episodes[0].Conversations {
		last := c.Messages[len(c.Messages)-2].Text
		if isFork := last == "try" && len(c.Messages) == 4; c.PrefixBroken == "user" && len(c.Messages) != 3 ||
			c.PrefixBroken == "fork" && !isFork {
			t.Errorf("the conversation %s has the cause %q, and ends with %q", c.Key, c.PrefixBroken, last)
		}
	}
}

// TestTranscriptsHaveTheCausesOfReplies plays an agent that changes its tools, in a format that drops the reasoning of
// replies before a message of the user. Each reply whose prompt does not extend the tokens before it has its causes.
func TestTranscriptsHaveTheCausesOfReplies(t *testing.T) {
	tokens := qwen3(t)
	policy := &script{tokens: tokens, replies: slices.Repeat([]string{"<think>\nWell.\n</think>\n\nYes."}, 3)}
	turn := 0
	env := agentOf(func(ctx context.Context, p environment.AgentPolicy) (environment.Turn, error) {
		var tools []chat.Tool
		messages := []chat.Message{user("a?")}
		for _, next := range []string{"b?", "c?", ""} {
			out, err := p.Complete(ctx, environment.Completion{Messages: messages, Tools: tools})
			if err != nil {
				return environment.Turn{}, err
			}
			messages = append(messages, out.Message, user(next))
			if next == "c?" {
				tools = []chat.Tool{{Name: "add", Parameters: json.RawMessage(`{"type":"object"}`)}}
			}
		}
		return done(1), nil
	})
	sample := policyFunc(func(ctx context.Context, request Request) (Sample, error) {
		request.Turn, turn = turn, turn+1
		return policy.Sample(ctx, request)
	})
	p := &Player{Environment: env, Renderer: rendererOf(t, "qwen3", tokens), Policy: sample, Gate: open{},
		Progress: &Progress{}}
	spec := singleMember(nil)
	spec.Transcript = true
	group, err := p.Play(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	m := group.Members[0]
	if diff := cmp.Diff(m.Metrics, causesOf(m)); diff != "" {
		t.Errorf("causes (-metrics +transcript):\n%s", diff)
	}
	var got []string
	for _, message := range transcript.FromGroup(group).Episodes[0].Conversations[0].Messages {
		got = append(got, message.Role+message.PrefixBroken)
	}
	want := []string{"user", "assistant", "user", "assistantformat", "user", "assistanttools"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages with their causes (-want +got):\n%s", diff)
	}
}

// system is a system prompt.
func system(text string) chat.Message { return chat.Message{Role: chat.RoleSystem, Content: text} }

// dialog is a conversation.
type dialog = []chat.Message

// TestEveryCauseOfABranchIsCounted plays an agent that calls a tool and then makes requests that do not extend its
// conversation: the agent has compacted, edited or repeated it.
func TestEveryCauseOfABranchIsCounted(t *testing.T) {
	tokens := qwen3(t)
	add := []chat.Tool{{Name: "add", Parameters: json.RawMessage(`{"type":"object"}`)}}
	// shown is a conversation with a call that the policy did not sample.
	shown := func(result string) dialog {
		call := chat.ToolCall{ID: "1", Name: "add", Arguments: "{}"}
		return dialog{system("Be brief."), user("An example."), {Role: chat.RoleAssistant, Calls: []chat.ToolCall{call}},
			{Role: chat.RoleTool, Name: "add", CallID: "1", Content: result}}
	}
	for name, tc := range map[string]struct {
		// next are the requests after a conversation of system prompt, question, call, result and answer.
		next func(said dialog) []dialog
		want map[string]float64
	}{
		"compaction into a system prompt": {func(dialog) []dialog { return []dialog{{system("You found 4."), user("b?")}} },
			map[string]float64{"branches": 2, "prefix_broken_start": 1}},
		"a summary as a further system prompt": {func(said dialog) []dialog {
			return []dialog{{said[0], system("You found 4."), user("b?")}}
		}, map[string]float64{"branches": 2, "prefix_broken_system": 1}},
		"compaction into a question": {func(said dialog) []dialog { return []dialog{{said[0], user("You found 4. b?")}} },
			map[string]float64{"branches": 2, "prefix_broken_user": 1}},
		"a call that is left out": {func(said dialog) []dialog { return []dialog{{said[0], said[1], said[4], user("b?")}} },
			map[string]float64{"branches": 2, "prefix_broken_assistant": 1}},
		"a result that is cleared": {func(said dialog) []dialog {
			result := said[3]
			result.Content = "[cleared]"
			return []dialog{{said[0], said[1], said[2], result}}
		}, map[string]float64{"branches": 2, "prefix_broken_fork": 1}},
		"results of calls that were not sampled": {func(dialog) []dialog { return []dialog{shown("4"), shown("5")} },
			map[string]float64{"branches": 3, "prefix_broken_user": 1, "prefix_broken_tool": 1}},
		"the same again": {func(said dialog) []dialog { return []dialog{said[:2]} },
			map[string]float64{"branches": 2, "prefix_broken_repeat": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			group := playThen(t, tokens, add, tc.next)
			if diff := cmp.Diff(tc.want, group.Members[0].Metrics); diff != "" {
				t.Errorf("metrics (-want +got):\n%s", diff)
			}
		})
	}
}

// playThen plays an agent that calls a tool and answers, and then makes further requests.
func playThen(t *testing.T, tokens tokenizer.Tokenizer, tools []chat.Tool, next func(said dialog) []dialog) rl.Group {
	t.Helper()
	policy := &script{tokens: tokens, replies: []string{
		"<tool_call>\n{\"name\": \"add\", \"arguments\": {}}\n</tool_call>", "Yes.", "No.", "No."}}
	env := agentOf(func(ctx context.Context, p environment.AgentPolicy) (environment.Turn, error) {
		ask := func(messages ...chat.Message) ([]chat.Message, error) {
			out, err := p.Complete(ctx, environment.Completion{Messages: messages, Tools: tools})
			return append(slices.Clip(messages), out.Message), err
		}
		said, err := ask(system("Be brief."), user("a?"))
		if err != nil {
			return environment.Turn{}, err
		}
		result := chat.Message{Role: chat.RoleTool, Content: "4", Name: "add", CallID: said[2].Calls[0].ID}
		if said, err = ask(append(said, result)...); err != nil {
			return environment.Turn{}, err
		}
		for _, further := range next(said) {
			if _, err := ask(further...); err != nil {
				return environment.Turn{}, err
			}
		}
		return done(1), nil
	})
	group := playScript(t, env, policy)
	if group.Outcome != rl.Usable {
		t.Fatalf("the group is %v: %s", group.Outcome, group.Reason)
	}
	return group
}
