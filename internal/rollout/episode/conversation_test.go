// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
)

// TestRenderIncludesSampledIDsAndReasoning renders a reply of which the environment sees only the answer. The renderer
// also needs the policy's reasoning before it.
func TestRenderIncludesSampledIDsAndReasoning(t *testing.T) {
	said, reply := chat.Message{Role: "assistant", Content: "4"}, chat.Message{Role: "assistant", Content: "4", Reply: 1}
	parts := []chat.Part{{Text: "two and two", Thinking: true}, {Text: "4"}}
	c := &conversation{replies: []chat.Message{{Role: "assistant", Content: "4", Sampled: []int32{1, 2}, Parts: parts}}}
	prompt := environment.Prompt{Messages: []chat.Message{{Role: "user", Content: "2+2?"}, reply,
		{Role: "user", Content: "Sure?"}, said}}
	want := renderer.Conversation{Messages: []chat.Message{
		{Role: "user", Content: "2+2?"},
		{Role: "assistant", Content: "4", Sampled: []int32{1, 2}, Parts: parts},
		{Role: "user", Content: "Sure?"},
		{Role: "assistant", Content: "4"}, // not a reply of the policy, which has said so only once
	}, Rendered: &c.rendered}
	if diff := cmp.Diff(want, c.render(prompt, &c.rendered)); diff != "" {
		t.Errorf("render (-want +got):\n%s", diff)
	}
}

// TestExamplesKeepTheirOwnTokens checks that an example with the same text as a reply stays as it is, and that the
// reply keeps the ids that were sampled for it: the next prompt contains these ids, and both turns are trained as one
// segment.
func TestExamplesKeepTheirOwnTokens(t *testing.T) {
	policy := policyFunc(func(context.Context, Request) (Sample, error) { return sampled("   yes  "), nil })
	first := ask("example", "yes", "q")
	env := &scripted{first: first, step: func(turn int, replies []environment.Reply) (environment.Turn, error) {
		if turn == 1 {
			return done(1), nil
		}
		messages := append(slices.Clone(first[0].Messages), replies[0].Message, chat.Message{Role: "user", Content: "on"})
		return environment.Turn{Prompts: []environment.Prompt{{Messages: messages}}}, nil
	}}
	group := play(t, env, policy, singleMember(nil))
	if n := len(group.Members[0].Trajectories[0].Segments); n != 1 {
		t.Errorf("there are %d segments, want 1", n)
	}
}
