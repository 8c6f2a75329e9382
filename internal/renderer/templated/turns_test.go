// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package templated_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/templated"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// step returns the messages that continue a conversation after a reply.
type step func(reply chat.Message) []chat.Message

func userReplies(reply chat.Message) []chat.Message {
	return []chat.Message{reply, {Role: chat.RoleUser, Content: "Sure? <|im_end|>"}}
}

func toolAnswers(reply chat.Message) []chat.Message {
	return []chat.Message{reply, {Role: chat.RoleTool, Content: "4\n", Name: "add", CallID: "functions.add:0"}}
}

// play renders a conversation with sampled replies, and returns the prompts and the indexes of the replies after which
// the next prompt does not begin with the last prompt and the reply.
func play(t *testing.T, r *templated.Renderer, replies [][]int32, next step) (prompts [][]int32, broken []int) {
	t.Helper()
	var rendered renderer.Rendered
	messages := []chat.Message{{Role: chat.RoleUser, Content: "2+2?"}}
	before := promptOf(t, r, renderer.Conversation{Messages: messages, Rendered: &rendered})
	for i, sampled := range replies {
		parsed, err := r.Parse(sampled)
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, next(parsed.Message)...)
		after := promptOf(t, r, renderer.Conversation{Messages: messages, Rendered: &rendered})
		if alone := promptOf(t, r, renderer.Conversation{Messages: messages}); !slices.Equal(alone, after) {
			t.Errorf("reply %d: the prompt depends on earlier renderings", i)
		}
		want := slices.Concat(before, sampled)
		if len(after) <= len(want) || !slices.Equal(after[:len(want)], want) {
			broken = append(broken, i)
		}
		prompts, before = append(prompts, after), after
	}
	return prompts, broken
}

func TestTurnsContinueWhatWasSampled(t *testing.T) {
	qwen := qwenTokens(t)
	simulator, err := tokenizer.ForModel("tinkersim/byte-136k")
	if err != nil {
		t.Fatal(err)
	}
	glm := byteTokens(t, "<|user|>", "<|assistant|>", "<|system|>", "<|observation|>", "<|endoftext|>", "[gMASK]")
	eos := map[string]string{"eos_token": "<|endoftext|>"}
	for name, tc := range map[string]struct {
		template string
		tokens   tokenizer.Tokenizer
		names    map[string]string
		replies  []string
		next     step
		broken   []int
		last     string
	}{
		"a history that stays": {chatML, qwen, nil, []string{"4<|im_end|>", "Yes.<|im_end|>"}, userReplies, nil,
			"<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n4<|im_end|>\n<|im_start|>user\nSure? <|im_end|><|im_end|>\n" +
				"<|im_start|>assistant\nYes.<|im_end|>\n<|im_start|>user\nSure? <|im_end|><|im_end|>\n<|im_start|>assistant\n"},
		"a reply without a stop": {chatML, qwen, nil, []string{"4"}, userReplies, nil,
			"<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n4<|im_end|>\n<|im_start|>user\nSure? <|im_end|><|im_end|>\n" +
				"<|im_start|>assistant\n"},
		"reasoning that is dropped": {chatML, qwen, nil, []string{"<think>\nx\n</think>\n\n4<|im_end|>", "Yes.<|im_end|>"},
			userReplies, []int{0},
			"<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n4<|im_end|>\n<|im_start|>user\nSure? <|im_end|><|im_end|>\n" +
				"<|im_start|>assistant\nYes.<|im_end|>\n<|im_start|>user\nSure? <|im_end|><|im_end|>\n<|im_start|>assistant\n"},
		"reasoning within a turn": {chatML, qwen, nil, []string{"<think>\nx\n</think>\n\n<tool_call>\n{\"name\": \"f\", " +
			"\"arguments\":   {}}\n</tool_call><|im_end|>"}, toolAnswers, nil,
			"<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n<think>\nx\n</think>\n\n<tool_call>\n{\"name\": \"f\", " +
				"\"arguments\":   {}}\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\n4\n\n</tool_response><|im_end|>\n" +
				"<|im_start|>assistant\n"},
		"the end of a text": {chatML, qwen, eos, []string{"4<|endoftext|>"}, userReplies, []int{0},
			"<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n4<|im_end|>\n<|im_start|>user\nSure? <|im_end|><|im_end|>\n" +
				"<|im_start|>assistant\n"},
		"the simulator's format": {roleColonEnd, simulator, nil, []string{" 4<|end|>", "5<|end|>"}, userReplies, nil,
			"User: 2+2?\n\nAssistant: 4<|end|>\n\nUser: Sure? <|im_end|>\n\nAssistant:5<|end|>\n\nUser: Sure? <|im_end|>\n\n" +
				"Assistant:"},
		"the mark of the next message": {marked, glm, eos, []string{"x</think>\n4<|user|>", "</think>\n5<|user|>"},
			userReplies, nil, "[gMASK]<|user|>\n2+2?<|assistant|>\n<think>x</think>\n4<|user|>\nSure? <|im_end|><|assistant|>\n" +
				"<think></think>\n5<|user|>\nSure? <|im_end|><|assistant|>\n<think>"},
		"the mark of another message": {marked, glm, eos, []string{"x</think>\n4<|user|>"}, toolAnswers, []int{0},
			"[gMASK]<|user|>\n2+2?<|assistant|>\n<think>\nx\n</think>\n4<|observation|>\n4\n<|assistant|>\n<think>"},
		"no mark": {marked, glm, eos, []string{"x</think>\n4"}, userReplies, nil,
			"[gMASK]<|user|>\n2+2?<|assistant|>\n<think>x</think>\n4<|user|>\nSure? <|im_end|><|assistant|>\n<think>"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRenderer(t, tc.template, tc.tokens, tc.names)
			replies := make([][]int32, len(tc.replies))
			for i, text := range tc.replies {
				replies[i] = tc.tokens.AppendEncode(nil, text, tokenizer.Specials)
			}
			prompts, broken := play(t, r, replies, tc.next)
			if diff := cmp.Diff(tc.broken, broken); diff != "" {
				t.Errorf("replies after which a segment begins (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.last, textOf(t, tc.tokens, prompts[len(prompts)-1])); diff != "" {
				t.Errorf("last prompt (-want +got):\n%s", diff)
			}
		})
	}
}

// TestArbitraryIDsStay checks that prompts keep the sampled ids, whatever they are: encoding their text again need not
// give the same ids.
func TestArbitraryIDsStay(t *testing.T) {
	tokens := qwenTokens(t)
	r := newRenderer(t, chatML, tokens, nil)
	end, _ := tokens.Special("<|im_end|>")
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		replies := make([][]int32, 3)
		for i := range replies {
			for range random.IntN(12) {
				replies[i] = append(replies[i], int32(random.IntN(256))) // No token opens or closes reasoning.
			}
			replies[i] = append(replies[i], end)
		}
		if _, broken := play(t, r, replies, userReplies); broken != nil {
			t.Errorf("seed %d: segments begin after the replies %d", seed, broken)
		}
	}
}

func TestExamples(t *testing.T) {
	tokens := qwenTokens(t)
	r := newRenderer(t, chatML, tokens, nil)
	example, err := r.Example(renderer.Conversation{Messages: []chat.Message{{Role: chat.RoleSystem, Content: "Be brief."},
		{Role: chat.RoleUser, Content: "2+2?"}, {Role: chat.RoleAssistant, Content: "4"},
		{Role: chat.RoleUser, Content: "Sure?"}, {Role: chat.RoleAssistant, Thinking: "x", Content: "Yes."}}}, false)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"Be brief.<|im_end|>", "2+2?<|im_end|>", "4<|im_end|>", "Sure?<|im_end|>",
		"<think>\nx\n</think>\n\nYes.<|im_end|>"}
	var got []string
	for _, w := range example.Written {
		got = append(got, textOf(t, tokens, example.IDs[w.Output.Begin:w.Output.End]))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
	given := textOf(t, tokens, example.IDs[:example.Given])
	if diff := cmp.Diff("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n"+
		"4<|im_end|>\n<|im_start|>user\nSure?<|im_end|>\n<|im_start|>assistant\n", given); diff != "" {
		t.Errorf("given (-want +got):\n%s", diff)
	}
}
