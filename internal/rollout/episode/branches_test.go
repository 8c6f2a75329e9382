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

// TestTranscriptsHaveTheCausesOfBranches plays an agent with branches: each one has its cause in the transcript, and
// together they are those that the metrics count.
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

// TestTranscriptsHaveTheCausesOfReplies plays an agent that changes its tools, and whose format drops the reasoning
// of replies before a message of the user. The replies whose tokens begin anew have the causes.
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
