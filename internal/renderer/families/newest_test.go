// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package families_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// TestGLMReplacesAStopThatBeginsAnotherMessage continues replies of GLM-5.3, which end with the token that begins the
// next message. If another message follows, only that token is replaced.
func TestGLMReplacesAStopThatBeginsAnotherMessage(t *testing.T) {
	r, tokens := asInARun(t, "glm5_3_max_reasoning")
	user := chat.Message{Role: chat.RoleUser, Content: "r"}
	cases := map[string]struct {
		sampled string
		next    []chat.Message
		want    string
	}{
		"the user follows": {sampled: "t</think> 4 <|user|>", next: []chat.Message{user}, want: "t</think> 4 <|user|>r"},
		"a result follows": {sampled: "t</think>x<|observation|>", next: []chat.Message{{Role: chat.RoleTool, Content: "r"}},
			want: "t</think>x<|observation|><tool_response>r</tool_response>"},
		"a result follows an answer": {sampled: "t</think>x<|user|>", next: []chat.Message{{Role: chat.RoleTool, Content: "r"}},
			want: "t</think>x<|observation|><tool_response>r</tool_response>"},
		"the user follows calls":        {sampled: "t</think>x<|observation|>", next: []chat.Message{user}, want: "t</think>x<|user|>r"},
		"the reply ended with its text": {sampled: "t</think>x<|endoftext|>", next: []chat.Message{user}, want: "t</think>x<|user|>r"},
		"the reply was cut":             {sampled: "t", next: []chat.Message{user}, want: "t<|user|>r"},
		"a system message follows": {sampled: "t</think>x<|user|>", next: []chat.Message{{Role: chat.RoleSystem, Content: "r"}},
			want: "t</think>x<|system|>r"},
		"nothing follows": {sampled: "t</think>x<|user|>", want: "t</think>x"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			parsed, err := r.Parse(tokens.AppendEncode(nil, tc.sampled, tokenizer.Specials))
			if err != nil {
				t.Fatal(err)
			}
			messages := slices.Concat([]chat.Message{{Role: chat.RoleUser, Content: "q"}, parsed.Message}, tc.next)
			ids, err := r.Prompt(renderer.Conversation{Messages: messages})
			if err != nil {
				t.Fatal(err)
			}
			const before, after = "[gMASK]<sop><|system|>Reasoning Effort: Max<|user|>q<|assistant|><think>", "<|assistant|><think>"
			if diff := cmp.Diff(tokens.AppendEncode(nil, before+tc.want+after, tokenizer.Specials), ids); diff != "" {
				text, _ := tokens.Decode(ids)
				t.Errorf("the prompt is %q (-want +got):\n%s", text, diff)
			}
		})
	}
}

// TestDeepseek41KeepsReasoningWithTools checks that earlier reasoning is dropped at the next turn unless tools are
// declared.
func TestDeepseek41KeepsReasoningWithTools(t *testing.T) {
	r, tokens := asInARun(t, "deepseekv4_1")
	sampled := tokens.AppendEncode(nil, "t</think>x<｜end▁of▁sentence｜>", tokenizer.Specials)
	parsed, err := r.Parse(sampled)
	if err != nil {
		t.Fatal(err)
	}
	first := []chat.Message{{Role: chat.RoleUser, Content: "q"}}
	for name, next := range map[string]chat.Message{"a result": {Role: chat.RoleTool, Content: "r"},
		"the user": {Role: chat.RoleUser, Content: "r"}} {
		for _, tools := range [][]chat.Tool{nil, {{Name: "add"}}} {
			before, err := r.Prompt(renderer.Conversation{Messages: first, Tools: tools})
			if err != nil {
				t.Fatal(err)
			}
			after, err := r.Prompt(renderer.Conversation{Messages: slices.Concat(first, []chat.Message{parsed.Message, next}),
				Tools: tools})
			if err != nil {
				t.Fatal(err)
			}
			want := slices.Concat(before, sampled)
			if got := len(after) > len(want) && slices.Equal(after[:len(want)], want); got != (tools != nil) {
				t.Errorf("%s follows, %d tools: the prompt extends the reply: %v", name, len(tools), got)
			}
		}
	}
}
