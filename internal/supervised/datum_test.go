// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package supervised_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/supervised"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// byteBuilder renders in bytes. Each byte is a token.
func byteBuilder(t testing.TB) *supervised.Builder {
	t.Helper()
	tokens, err := tokenizer.ForModel("tinkersim/byte-136k")
	if err != nil {
		t.Fatal(err)
	}
	format, err := families.New("role_colon", tokens, families.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &supervised.Builder{
		Renderer: format, Tokenizer: tokens, TrainOn: supervised.LastAssistant, Normalization: supervised.PerToken,
	}
}

const sumRow = `{"messages": [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]}`

func TestDatumIsShiftedAndNormalized(t *testing.T) {
	b := byteBuilder(t)
	got, err := b.Datum([]byte(sumRow))
	if err != nil {
		t.Fatal(err)
	}
	text := "User: 2+2?\n\nAssistant: 4\n\nUser:"
	ids := b.Tokenizer.Encode(text)
	want := supervised.Datum{Tokens: ids[:len(ids)-1], Targets: ids[1:], Weights: make([]float32, len(ids)-1)}
	for i := strings.Index(text, " 4") - 1; i < len(want.Weights); i++ {
		want.Weights[i] = 1
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Datum (-want +got):\n%s", diff)
	}
	b.Normalization = supervised.PerExample
	if got, err = b.Datum([]byte(sumRow)); err != nil {
		t.Fatal(err)
	}
	for i := range want.Weights {
		want.Weights[i] /= float32(len(" 4\n\nUser:"))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Datum with PerExample (-want +got):\n%s", diff)
	}
}

func TestDatumIsCutFromTheRight(t *testing.T) {
	b := byteBuilder(t)
	text := "User: 2+2?\n\nAssistant: 4"
	b.MaxTokens, b.Context, b.Normalization = len(text), len(text), supervised.PerExample
	d, err := b.Datum([]byte(sumRow))
	if err != nil {
		t.Fatal(err)
	}
	if want := b.Tokenizer.Encode(text); !cmp.Equal(want[1:], d.Targets) {
		t.Errorf("Targets = %v, want %v", d.Targets, want[1:])
	}
	// Tokens that are cut off do not count: the two tokens that are left share the weight.
	if n := len(d.Weights); d.Weights[n-1] != 0.5 || d.Weights[n-2] != 0.5 || d.Weights[n-3] != 0 {
		t.Errorf("Weights = %v, want the last two to be 0.5", d.Weights)
	}
}

func TestTextIsTrainedAsAWhole(t *testing.T) {
	b := byteBuilder(t)
	b.Begin, b.End = []int32{257}, []int32{258}
	for _, mode := range everyMode {
		b.TrainOn = mode
		got, err := b.Datum([]byte(`{"text": "ab"}`))
		want := supervised.Datum{Tokens: []int32{257, 'a', 'b'}, Targets: []int32{'a', 'b', 258}, Weights: []float32{1, 1, 1}}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("Datum with %s: %v (-want +got):\n%s", mode, err, diff)
		}
	}
}

func TestRowsThatAreNotTrained(t *testing.T) {
	for name, c := range map[string]struct {
		row    string
		edit   func(b *supervised.Builder)
		reason supervised.Reason
		want   string
	}{
		"no reply": {`{"messages": [{"role": "user", "content": "x"}]}`, nil, supervised.NoWeight,
			"messages: none is the assistant's: add a reply, or set supervised.trainOn to All"},
		"a last message that is no reply": {
			`{"messages": [{"role": "assistant", "content": "x"}, {"role": "user", "content": "y"}]}`,
			func(b *supervised.Builder) { b.TrainOn = supervised.LastAssistant }, supervised.NoWeight,
			"messages[1] is the last one, and its role is user: end with the assistant's reply, or set supervised.trainOn to " +
				"AllAssistant",
		},
		"the reply is cut": {sumRow, func(b *supervised.Builder) { b.MaxTokens = 12 }, supervised.NoWeight,
			"all that has weight is beyond the first 12 of 31 tokens: raise supervised.maxTokens, or shorten"},
		"nothing is marked": {
			sumRow, func(b *supervised.Builder) { b.TrainOn = supervised.Marked }, supervised.NoWeight,
			"no message has a weight: give some weight or trainable, or set supervised.trainOn to AllAssistant",
		},
		"all weights are 0": {
			`{"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y", "trainable": false}]}`,
			func(b *supervised.Builder) { b.TrainOn = supervised.Marked }, supervised.NoWeight,
			"all weights of messages are 0: raise one, or remove the row",
		},
		"marks that are not read": {
			`{"messages": [{"role": "assistant", "content": "x", "weight": 1}]}`, nil, supervised.NotRendered,
			"set supervised.trainOn to Marked",
		},
		"longer than the context": {
			sumRow, func(b *supervised.Builder) { b.Context = 20 }, supervised.TooLong,
			"31 tokens, and the model's context has 20: set supervised.maxTokens to at most 20",
		},
		"cut, but not to the context": {
			sumRow, func(b *supervised.Builder) { b.Context, b.MaxTokens = 20, 25 }, supervised.TooLong, "25 tokens",
		},
		"one token": {`{"text": "x"}`, nil, supervised.Empty, "1 tokens"},
		"reasoning in a format without": {
			`{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "y"}]}]}`,
			nil, supervised.NotRendered, "no place for it: change the row, or set model.renderer",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := byteBuilder(t)
			if c.edit != nil {
				c.edit(b)
			}
			_, err := b.Datum([]byte(c.row))
			checkUnusable(t, err, c.reason, c.want)
		})
	}
}

// TestMarkedParts compares the text of the tokens that have each weight, for formats that write reasoning in different
// ways.
func TestMarkedParts(t *testing.T) {
	part := func(kind, text, weight string) string {
		if weight != "" {
			weight = `, "weight": ` + weight
		}
		return fmt.Sprintf(`{"type": %q, %q: %s%s}`, kind, kind, quote(text), weight)
	}
	reply := func(weight string, parts ...string) string {
		if weight != "" {
			weight = `, "weight": ` + weight
		}
		return `{"role": "assistant", "content": [` + strings.Join(parts, ",") + `]` + weight + `}`
	}
	question := `{"role": "user", "content": "q"}`
	think, text := part("thinking", " two and two\n", "0"), part("text", " it is 4", "")
	for name, c := range map[string]struct {
		renderer, family string
		messages         []string
		// want has the text of the tokens with each weight.
		want map[float32]string
	}{
		"only the answer": {
			"qwen3", "qwen3", []string{question, reply("1", think, text)},
			map[float32]string{1: " it is 4<|im_end|>"},
		},
		"the end belongs to the last part": {
			"qwen3", "qwen3", []string{question, reply("", think, part("text", "4", "2"))},
			map[float32]string{2: "4<|im_end|>"},
		},
		"only the reasoning": {
			"qwen3", "qwen3", []string{question, reply("0", part("thinking", "two", "1"), part("text", "4", ""))},
			map[float32]string{1: "<think>\ntwo\n</think>\n\n"},
		},
		"two texts": {
			"qwen3", "qwen3", []string{question, reply("", part("text", "no yes", "0"), part("text", " yes no", "1"))},
			map[float32]string{1: " yes no<|im_end|>"},
		},
		"the same text twice, of which history drops the first": {
			"qwen3", "qwen3",
			[]string{
				question, reply("0", part("thinking", "4", "3"), part("text", "4", "2")),
				question, reply("1", part("text", "5", "")),
			},
			map[float32]string{2: "4", 1: "<think>\n\n</think>\n\n5<|im_end|>"},
		},
		"channels": {
			"gpt_oss_no_sysprompt", "gpt_oss",
			[]string{question, reply("1", part("thinking", "two", "0.5"), part("text", "4", ""))},
			map[float32]string{0.5: "<|channel|>analysis<|message|>two<|end|><|start|>assistant<|channel|>final<|message|>",
				1: "4<|return|>"},
		},
		"tokens apart": {
			"deepseekv3_thinking", "deepseek_v3_1",
			[]string{question, reply("1", part("thinking", "two", "0"), part("text", "4", ""))},
			map[float32]string{1: "4<｜end▁of▁sentence｜>"},
		},
		"text that the tokenizer normalizes": {
			"qwen3", "qwen3",
			[]string{question, reply("", part("text", "Cafe\u0301 e\u0301", "0"), part("text", " nai\u0308ve", "1"))},
			map[float32]string{1: " na\u00efve<|im_end|>"},
		},
		"white space is trimmed": {
			"qwen3_5", "qwen3_5",
			[]string{
				question, reply("", part("text", "\n ", "3"), part("thinking", "two", "0"), part("text", "\n4 \n", "1")),
			},
			map[float32]string{1: "4<|im_end|>"},
		},
		"reasoning between texts": {
			"qwen3", "qwen3",
			[]string{
				question, reply("", part("text", "pre", "1"), part("thinking", "mid", "0"), part("text", "post", "1")),
			},
			map[float32]string{1: "prepost<|im_end|>"},
		},
		"calls belong to the message": {
			"qwen3", "qwen3", []string{question, `{"role": "assistant", "content": [` + text + `], "weight": 1, "tool_calls": [
				{"type": "function", "id": "c", "function": {"name": "f", "arguments": "{}"}}]}`, `{"role": "tool", "content": "r", "tool_call_id": "c"}`},
			map[float32]string{1: " it is 4\n<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call><|im_end|>"},
		},
		"calls belong to the message, and not to its only part": {
			"qwen3", "qwen3", []string{question, `{"role": "assistant", "content": [` + part("text", "so", "0") +
				`], "weight": 1, "tool_calls": [
				{"type": "function", "id": "c", "function": {"name": "f", "arguments": "{}"}}]}`, `{"role": "tool", "content": "r", "tool_call_id": "c"}`},
			map[float32]string{1: "\n<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call><|im_end|>"},
		},
		"a system message of which the format makes one text": {
			"qwen3_8_low_reasoning", "qwen3_5",
			[]string{`{"role": "system", "content": [` + part("text", "a", "0") + "," + part("text", "b", "2") + `]}`, question,
				reply("1", part("text", "4", ""))},
			map[float32]string{
				2: "Reasoning effort is set to low. Keep your thinking brief and focused, moving directly to the conclusion " +
					"without unnecessary elaboration.\n\nab<|im_end|>",
				1: "\n</think>\n\n4<|im_end|>",
			},
		},
		"one part": {
			"qwen3_instruct", "qwen3", []string{question, reply("", part("text", "4", "0.25"))},
			map[float32]string{0.25: "4<|im_end|>"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := supervised.Builder{Renderer: build(t, c.renderer, c.family), TrainOn: supervised.Marked}
			row, err := supervised.ReadRow([]byte(`{"messages": [` + strings.Join(c.messages, ",") + `]}`))
			if err != nil {
				t.Fatal(err)
			}
			ids, weights, err := b.Weigh(row)
			if err != nil {
				t.Fatal(err)
			}
			byWeight := map[float32][]int32{}
			for i, w := range weights {
				if w != 0 {
					byWeight[w] = append(byWeight[w], ids[i])
				}
			}
			got := map[float32]string{}
			for w, own := range byWeight {
				if got[w], err = vocabulary(t, c.family).Decode(own); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				whole, _ := vocabulary(t, c.family).Decode(ids)
				t.Errorf("of %q (-want +got):\n%s", whole, diff)
			}
		})
	}
}

// TestMarkedPartsWithCallsAsText weighs a message whose calls are written as text, which is one more part than the row
// has.
func TestMarkedPartsWithCallsAsText(t *testing.T) {
	b := supervised.Builder{Renderer: families.WithCalls(build(t, "qwen3", "qwen3"), false), TrainOn: supervised.Marked}
	row, err := supervised.ReadRow(
		[]byte(`{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "weight": 1, "content": [
		{"type": "thinking", "thinking": "two", "weight": 0}], "tool_calls": [{"type": "function", "id": "c", "function": {"name": "f", "arguments": "{}"}}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	ids, weights, err := b.Weigh(row)
	if err != nil {
		t.Fatal(err)
	}
	var trained []int32
	for i, w := range weights {
		if w == 1 {
			trained = append(trained, ids[i])
		}
	}
	text, err := vocabulary(t, "qwen3").Decode(trained)
	if err != nil || strings.Contains(text, "two") || !strings.HasSuffix(text, "</tool_call><|im_end|>") {
		t.Errorf("%q is trained, %v, want the call without the reasoning", text, err)
	}
}

func quote(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// TestPartsAreFoundInEveryFormat checks that finding parts changes neither ids nor the places of messages, for all
// recorded conversations.
func TestPartsAreFoundInEveryFormat(t *testing.T) {
	conversations := conversations(t)
	found := 0
	for _, r := range records(t) {
		row, err := supervised.ReadRow(conversations[r.Case].row(t, supervised.All))
		if err != nil {
			t.Fatal(err)
		}
		made := build(t, r.Renderer, r.Family)
		plain, err := made.Example(row.Conversation, false)
		if err != nil {
			continue
		}
		withParts, err := made.Example(row.Conversation, true)
		if err != nil {
			t.Errorf("%s of %s: %v", r.Case, r.Renderer, err)
			continue
		}
		for i := range withParts.Written {
			w := &withParts.Written[i]
			for j, part := range w.Parts {
				text, err := vocabulary(t, r.Family).Decode(withParts.IDs[part.Begin:part.End])
				want := row.Conversation.Messages[w.Message].Parts[j].Text
				if err != nil || text != "" && strings.TrimRight(text, "\n") != want {
					// A token that begins in a part belongs to the part, and may also contain a line break of the format.
					t.Errorf("%s of %s: part %d of message %d is %q, want %q", r.Case, r.Renderer, j, w.Message, text, want)
				}
				if text != "" {
					found++
				}
			}
			w.Parts = nil
		}
		if diff := cmp.Diff(plain, withParts); diff != "" {
			t.Errorf("%s of %s differs with parts (-without +with):\n%s", r.Case, r.Renderer, diff)
		}
	}
	if found < 100 {
		t.Errorf("%d parts are found, want at least 100", found)
	}
}
