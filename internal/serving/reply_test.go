// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"compress/gzip"
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/gateway/dialect"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/renderer/load"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// formatOf returns a format of a family with its test vocabulary.
func formatOf(t *testing.T, name, vocabulary string) *load.Renderer {
	t.Helper()
	file, err := os.Open("../renderer/families/testdata/tokenizers/" + vocabulary + ".json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(unzipped)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := tokenizer.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	format, err := families.New(name, tokens, families.Options{Date: "2026-11-27"})
	if err != nil {
		t.Fatal(err)
	}
	return &load.Renderer{Renderer: format, Tokens: tokens}
}

// recited is a source that samples the tokens of one reply, whatever the prompt is.
type recited struct {
	prompt, reply []int32
	requests      int
}

func (r *recited) Sample(_ context.Context, _ Weights, request tinker.SampleRequest) (tinker.SampleResult, error) {
	r.requests++
	ids, _ := request.Prompt.TextTokens()
	left := r.reply[len(ids)-len(r.prompt):]
	sequence := tinker.SampledSequence{StopReason: tinker.StopReasonStop, Tokens: left,
		Logprobs: make([]float32, len(left))}
	if most := request.SamplingParams.MaxTokens; most != nil && *most < len(left) {
		sequence.StopReason, sequence.Tokens = "length", left[:*most]
		sequence.Logprobs = sequence.Logprobs[:*most]
	}
	return tinker.SampleResult{Sequences: []tinker.SampledSequence{sequence}}, nil
}

// replies are replies in the formats of families, with their special tokens.
var replies = map[string]struct{ format, vocabulary, text string }{
	"text":      {"qwen3", "qwen3", "Four is 2 < 3 and a<b.\n\n 日本 \U0001f600!<|im_end|>"},
	"reasoning": {"qwen3", "qwen3", "<think>\nI add 2 and 2, so <4>.\n</think>\n\nFour.\n\nYes.<|im_end|>"},
	"call": {"qwen3", "qwen3", "<think>\nI call.\n</think>\n\nWait.\n\n<tool_call>\n{\"name\": \"add\", \"arguments\": " +
		"{\"a\": 1}}\n</tool_call><|im_end|>"},
	"calls alone": {"qwen3", "qwen3",
		"<tool_call>\n{\"name\": \"add\", \"arguments\": {}}\n</tool_call><|im_end|>"},
	"reasoning is not over": {"qwen3", "qwen3", "<think>\nI add 2 and 2 and"},
	"a broken call":         {"qwen3", "qwen3", "Wait.\n<tool_call>\n{\"name\": \"add\"<|im_end|>"},
	"deepseek": {"deepseekv3_thinking", "deepseek_v3_1",
		"I add 2.</think>Four is 4.<｜end▁of▁sentence｜>"},
	"harmony": {"gpt_oss_low_reasoning", "gpt_oss", "<|channel|>analysis<|message|>I add 2.<|end|><|start|>assistant" +
		"<|channel|>final<|message|>Four is\n4.<|return|>"},
	"a call of harmony": {"gpt_oss_low_reasoning", "gpt_oss", "<|channel|>analysis<|message|>I add.<|end|><|start|>" +
		"assistant<|channel|>commentary to=functions.add <|constrain|>json<|message|>{\"a\": 1}<|call|>"},
	"llama": {"llama3", "llama3", "Four is {4}.<|eot_id|>"},
	"kimi": {"kimi_k2", "kimi_k2", "<think>I add.</think>Wait. <|tool_calls_section_begin|><|tool_call_begin|>" +
		"functions.add:0<|tool_call_argument_begin|>{\"a\": 1}<|tool_call_end|><|tool_calls_section_end|><|im_end|>"},
	"nemotron":           {"nemotron3", "nemotron3", "I add 2.\n</think>\nFour is 4.<|im_end|>"},
	"the prompt reasons": {"qwen3_5", "qwen3_5", "I add 2 and 2.\n</think>\n\nFour.<|im_end|>"},
}

// TestStreamedRepliesAreWholeReplies streams replies in pieces of each size: the pieces together are the reply that is
// read whole, nothing of a tag or a call is among them, and text comes before the end.
func TestStreamedRepliesAreWholeReplies(t *testing.T) {
	for name, tc := range replies {
		t.Run(name, func(t *testing.T) {
			format := formatOf(t, tc.format, tc.vocabulary)
			reply := format.Tokens.AppendEncode(nil, tc.text, tokenizer.Specials)
			prompt, err := (Model{Format: format}).Prompt([]chat.Message{{Role: chat.RoleUser, Content: "2+2?"}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for size := 1; size <= len(reply); size++ {
				source := &recited{prompt: prompt, reply: reply}
				model := Model{Format: format, Sampler: source, Pieces: Pieces{First: size, Most: size}}
				ask := Ask{Prompt: prompt, MaxTokens: len(reply)}
				whole, err := model.Replies(t.Context(), ask, 1)
				if err != nil {
					t.Fatal(err)
				}
				var shown []chat.Part
				early := 0
				streamed, err := model.Reply(t.Context(), ask, func(piece chat.Part) error {
					shown = append(shown, piece)
					if source.requests <= len(reply)/size {
						early++
					}
					return nil
				})
				if err != nil {
					t.Fatalf("pieces of %d: %v", size, err)
				}
				got := dialect.Normal(chat.Message{Role: chat.RoleAssistant, Parts: shown, Calls: streamed.Message.Calls})
				if diff := cmp.Diff(streamed.Message, got); diff != "" {
					t.Fatalf("pieces of %d (-reply +pieces):\n%s", size, diff)
				}
				if diff := cmp.Diff(whole[0].Message, streamed.Message, cmp.Comparer(sameText)); diff != "" {
					t.Fatalf("pieces of %d (-whole +streamed):\n%s", size, diff)
				}
				if size == 1 && early == 0 && len(whole[0].Message.Content) > 5 {
					t.Errorf("pieces before the end: got %d, want some of %q", early, whole[0].Message.Content)
				}
			}
		})
	}
}

// TestReasoningOfReplies counts the tokens of replies up to the end of their reasoning.
func TestReasoningOfReplies(t *testing.T) {
	for name, reasoning := range map[string]string{"text": "", "reasoning": "<think>\nI add 2 and 2, so <4>.\n</think>",
		"call": "<think>\nI call.\n</think>", "calls alone": "", "reasoning is not over": "<think>\nI add 2 and 2 and",
		"harmony": "<|channel|>analysis<|message|>I add 2.", "kimi": "<think>I add.</think>",
		"nemotron": "I add 2.\n</think>", "the prompt reasons": "I add 2 and 2.\n</think>"} {
		tc := replies[name]
		format := formatOf(t, tc.format, tc.vocabulary)
		reply := format.Tokens.AppendEncode(nil, tc.text, tokenizer.Specials)
		prompt, err := (Model{Format: format}).Prompt([]chat.Message{{Role: chat.RoleUser, Content: "2+2?"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		model := Model{Format: format, Sampler: &recited{prompt: prompt, reply: reply}}
		answers, err := model.Replies(t.Context(), Ask{Prompt: prompt, MaxTokens: len(reply)}, 1)
		if err != nil {
			t.Fatal(err)
		}
		want := len(format.Tokens.AppendEncode(nil, reasoning, tokenizer.Specials))
		if got := model.reasoningOf(answers[0]); got != want {
			t.Errorf("%s: %d of %d tokens are reasoning, want %d", name, got, len(reply), want)
		}
	}
}

// sameText compares texts without the white space around them.
func sameText(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) }

// TestStopTextsEndReplies ends replies at a text of the request, in pieces and whole.
func TestStopTextsEndReplies(t *testing.T) {
	format := formatOf(t, "qwen3", "qwen3")
	reply := format.Tokens.AppendEncode(nil, "One, two, three, END four and more.<|im_end|>", tokenizer.Specials)
	for _, size := range []int{0, 1, 2, 3, 100} {
		source := &recited{prompt: []int32{1}, reply: reply}
		model := Model{Format: format, Sampler: source, Pieces: Pieces{First: size, Most: size}}
		for _, raw := range []bool{false, true} {
			text := ""
			ask := Ask{Prompt: []int32{1}, MaxTokens: 100, Stop: []string{"never", "END"}, Raw: raw}
			got, err := model.Reply(t.Context(), ask, func(piece chat.Part) error {
				text += piece.Text
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if text != "One, two, three, " || got.Message.Content != text || got.Stop != dialect.StopSequence ||
				got.StopText != "END" {
				t.Errorf("pieces of %d: shown was %q of %+v", size, text, got)
			}
			if size > 0 && size < 4 && len(got.Tokens) >= len(reply)-2 {
				t.Errorf("pieces of %d: %d tokens were sampled, want those up to the stop", size, len(got.Tokens))
			}
		}
	}
}

// TestLengths checks that a reply that the limit of its request has cut is told from one of which only the pieces were
// cut.
func TestLengths(t *testing.T) {
	format := formatOf(t, "qwen3", "qwen3")
	reply := format.Tokens.AppendEncode(nil, "One, two, three.<|im_end|>", tokenizer.Specials)
	for name, tc := range map[string]struct {
		most int
		want dialect.StopReason
	}{"cut": {2, dialect.StopLength}, "whole": {100, dialect.StopEnd}, "no bound": {0, dialect.StopEnd}} {
		source := &recited{prompt: []int32{1}, reply: reply}
		model := Model{Format: format, Sampler: source, Pieces: Pieces{First: 1, Most: 2}}
		ask := Ask{Prompt: []int32{1}, MaxTokens: tc.most}
		got, err := model.Reply(t.Context(), ask, func(chat.Part) error { return nil })
		if err != nil || got.Stop != tc.want || tc.most == 2 && len(got.Tokens) != 2 {
			t.Errorf("%s: got %+v, %v, want stop %v", name, got, err, tc.want)
		}
	}
}

func TestSettled(t *testing.T) {
	for name, tc := range map[string]struct {
		text  string
		raw   bool
		stops []string
		want  string
	}{
		"text":              {text: "a < b", want: "a < b"},
		"white space":       {text: "a \n", want: "a"},
		"half a character":  {text: "a\uFFFD", want: "a"},
		"half a tag":        {text: "a <tool", want: "a"},
		"a tag":             {text: "a <think> b", want: "a"},
		"raw":               {text: "a <think> ", raw: true, want: "a <think> "},
		"half a stop text":  {text: "a\nUs", raw: true, stops: []string{"\nUser:"}, want: "a"},
		"a whole stop text": {text: "a\nUser: b", raw: true, stops: []string{"\nUser:"}, want: "a"},
	} {
		if got := settled(tc.text, tc.raw, tc.stops); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestSeedsOfChoicesDiffer(t *testing.T) {
	var all []int64
	for choice := range 4 {
		for piece := range 4 {
			all = append(all, *seedOf(new(int64(7)), choice, piece))
		}
	}
	if slices.Sort(all); len(slices.Compact(all)) != 16 || seedOf(nil, 1, 1) != nil {
		t.Errorf("seeds are %v", all)
	}
}
