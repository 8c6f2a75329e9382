// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package families_test

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// TestReasoningTokens counts the tokens of reasoning and its tags in replies. Their pieces are encoded separately, so
// that the expected number is known.
func TestReasoningTokens(t *testing.T) {
	type piece struct {
		text      string
		reasoning bool
	}
	for name, tc := range map[string]struct {
		renderer, family string
		reply            []piece
	}{
		"none":        {"qwen3", "qwen3", []piece{{"Hello there", false}}},
		"one block":   {"qwen3", "qwen3", []piece{{"<think>\nLet me see.\n</think>", true}, {"\n\nHello.", false}}},
		"empty block": {"qwen3", "qwen3", []piece{{"<think>\n\n</think>\n\nHello.", false}}},
		"not closed":  {"qwen3", "qwen3", []piece{{"<think>\nLet me see.", false}}},
		"two blocks": {"qwen3_instruct", "qwen3", []piece{{"It is", false}, {"<think>one</think>", true}, {" or", false},
			{"<think>two</think>", true}, {" so.", false}}},
		"equal blocks": {"qwen3_instruct", "qwen3", []piece{{"<think>one</think>", true}, {"one", false},
			{"<think>one</think>", true}}},
		"begun by the prompt": {"qwen3_5", "qwen3_5", []piece{{"Let me see.\n</think>", true}, {"\n\nHello.", false}}},
		"a call": {"qwen3", "qwen3", []piece{{"<think>\nLet me see.\n</think>", true},
			{"\n\n<tool_call>\n{\"name\": \"add\", \"arguments\": {}}\n</tool_call>", false}}},
		"channels": {"gpt_oss_low_reasoning", "gpt_oss", []piece{{"<|channel|>analysis<|message|>Let me see.", true},
			{"<|end|><|start|>assistant<|channel|>final<|message|>Hello.", false}}},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOracle(t, "", tc.renderer, tc.family)
			var sampled []int32
			want := 0
			for _, each := range tc.reply {
				ids := o.tokens.AppendEncode(nil, each.text, tokenizer.Specials)
				if sampled = append(sampled, ids...); each.reasoning {
					want += len(ids)
				}
			}
			sampled = append(sampled, o.renderer.Stop().Tokens[0])
			if got := renderer.ReasoningTokens(o.renderer, sampled); got != want {
				parsed, _ := o.renderer.Parse(sampled)
				t.Errorf("got %d tokens of %d, want %d: the reply is %+v", got, len(sampled), want, parsed.Message.AllParts())
			}
		})
	}
}
