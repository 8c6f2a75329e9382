// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tinker-operator/tinker-operator/internal/chat"
)

func number32(v int) *int { return &v }

func TestDecode(t *testing.T) {
	add := chat.Tool{Name: "add", Description: "Adds.", Parameters: json.RawMessage(`{"b": 1, "a": 2}`)}
	call := chat.ToolCall{ID: "c1", Name: "add", Arguments: `{"x":1}`}
	cases := map[string]struct {
		endpoint Endpoint
		body     string
		want     Request
	}{
		"chat": {
			ChatCompletions, `{"model":"policy","stream":true,"stream_options":{"include_usage":true},"stop":"END","n":2,
			"max_tokens":5,"max_completion_tokens":6,"temperature":0.5,"logprobs":true,"top_logprobs":3,
			"tools":[{"type":"function","function":{"name":"add","description":"Adds.","parameters":{"b": 1, "a": 2}}}],
			"messages":[{"role":"developer","content":"s"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
			{"role":"assistant","content":null,"reasoning_content":"r","tool_calls":[{"id":"c1","type":"function","function":{"name":"add","arguments":"{\"x\":1}"}}]},
			{"role":"tool","tool_call_id":"c1","content":"2"}]}`,
			Request{
				Model: "policy", Stream: true, IncludeUsage: true, Stop: []string{"END"}, N: 2, MaxTokens: number32(6),
				Logprobs: number32(3), Overruled: []string{"temperature"}, Tools: []chat.Tool{add},
				Messages: []chat.Message{
					{Role: "system", Content: "s"}, {Role: "user", Content: "ab"},
					{Role: "assistant", Thinking: "r", Calls: []chat.ToolCall{call}},
					{Role: "tool", Content: "2", CallID: "c1", Name: "add"},
				},
			},
		},
		"completions": {
			Completions, `{"model":"policy","prompt":["a",[1,2]],"echo":true,"logprobs":0,"max_tokens":0,"stop":["x","y"]}`,
			Request{
				Endpoint: Completions, Model: "policy", Prompts: []Prompt{{Text: "a"}, {Tokens: []int32{1, 2}}}, Echo: true,
				Logprobs: number32(0), MaxTokens: number32(0), Stop: []string{"x", "y"}, N: 1,
			},
		},
		"responses": {
			Responses, `{"model":"policy","instructions":"s","previous_response_id":"r0","max_output_tokens":7,
			"tools":[{"type":"function","name":"add","description":"Adds.","parameters":{"b": 1, "a": 2}}],
			"input":[{"type":"function_call_output","call_id":"c0","output":[{"type":"input_text","text":"2"}]},
			{"type":"reasoning","id":"x","summary":[{"type":"summary_text","text":"r"}]},
			{"type":"function_call","call_id":"c1","name":"add","arguments":"{\"x\":1}"},
			{"type":"function_call_output","call_id":"c1","output":"3"},{"role":"assistant","content":"a"},
			{"role":"assistant","content":"b"},{"role":"user","content":"q"}]}`,
			Request{
				Endpoint: Responses, Model: "policy", Instructions: "s", PreviousID: "r0", MaxTokens: number32(7), N: 1,
				Tools: []chat.Tool{add}, Messages: []chat.Message{
					{Role: "tool", Content: "2", CallID: "c0"},
					{Role: "assistant", Thinking: "r", Calls: []chat.ToolCall{call}}, {Role: "tool", Content: "3", CallID: "c1"},
					{Role: "assistant", Content: "a"}, {Role: "assistant", Content: "b"}, {Role: "user", Content: "q"},
				},
			},
		},
		"messages": {
			Messages, `{"model":"policy","max_tokens":8,"stop_sequences":["END"],"stream":true,"temperature":1,"top_k":5,
			"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],
			"tools":[{"name":"add","description":"Adds.","input_schema":{"b": 1, "a": 2}}],
			"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[
			{"type":"thinking","thinking":"r","signature":"signature-of-1-bytes"},{"type":"text","text":"t"},
			{"type":"tool_use","id":"c1","name":"add","input":{"x": 1}},{"type":"tool_use","id":"c2","name":"sub","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"2"}]},
			{"type":"tool_result","tool_use_id":"c1","is_error":true},{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}`,
			Request{
				Endpoint: Messages, Model: "policy", MaxTokens: number32(8), Stop: []string{"END"}, Stream: true, N: 1,
				Overruled: []string{"temperature", "top_k"}, Ignored: []Field{{"is_error", "messages.2.content.1.is_error"}},
				Tools: []chat.Tool{add}, Messages: []chat.Message{
					{Role: "system", Content: "s"}, {Role: "user", Content: "q"},
					{Role: "assistant", Thinking: "r", Content: "t",
						Calls: []chat.ToolCall{call, {ID: "c2", Name: "sub", Arguments: "{}"}}},
					{Role: "tool", Content: "2", CallID: "c2", Name: "sub"}, {Role: "tool", CallID: "c1", Name: "add"},
					{Role: "user", Content: "ab"},
				},
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Decode(c.endpoint, []byte(c.body), testOptions(Ignore))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&c.want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(Request{})); diff != "" {
				t.Errorf("requests differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConversationContinuesAResponse(t *testing.T) {
	body := `{"model":"m","instructions":"s","previous_response_id":"r","input":[{"type":"function_call_output","call_id":"c","output":"2"}]}`
	request, err := Decode(Responses, []byte(body), testOptions(Ignore))
	if err != nil {
		t.Fatal(err)
	}
	orphan := chat.Message{Role: "tool", Content: "1", CallID: "b", Name: "old"} // Its call is in a message before these.
	previous := []chat.Message{orphan, {Role: "assistant",
		Calls: []chat.ToolCall{{ID: "c", Name: "add", Arguments: "{}"}}}}
	got, err := request.Conversation(previous)
	if err != nil {
		t.Fatal(err)
	}
	want := []chat.Message{{Role: "system", Content: "s"}, orphan, previous[1], {Role: "tool", Content: "2", CallID: "c",
		Name: "add"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conversations differ (-want +got):\n%s", diff)
	}
	_, err = request.Conversation(nil)
	if e, ok := errors.AsType[*Error](err); !ok || e.Param != "input[0].call_id" {
		t.Errorf("got %v, want an error for input[0].call_id", err)
	}
}

func TestRepliesWithoutWordsAreErrors(t *testing.T) {
	call := func(arguments string) []Choice {
		return []Choice{{Message: chat.Message{Calls: []chat.ToolCall{{ID: "c", Name: "f", Arguments: arguments}}}}}
	}
	for name, c := range map[string]struct {
		endpoint Endpoint
		choices  []Choice
		want     string
	}{
		"no choice":     {ChatCompletions, nil, "no choice"},
		"two choices":   {Messages, make([]Choice, 2), "2 choices"},
		"two responses": {Responses, make([]Choice, 2), "2 choices"},
		"arguments":     {ChatCompletions, call(`[1]`), "call c"},
		"no JSON":       {Messages, call(`{"a"`), "call c"},
		"no signature":  {Messages, []Choice{{Message: chat.Message{Thinking: "t"}}}, "signature"},
		"count":         {CountTokens, make([]Choice, 1), "count_tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			request, reply := &Request{Endpoint: c.endpoint, N: 1}, &Reply{ID: "r", Choices: c.choices}
			_, bodyErr := Encode(request, reply)
			_, streamErr := EncodeStream(request, reply)
			for _, err := range []error{bodyErr, streamErr} {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want an error with %q", err, c.want)
				}
			}
		})
	}
}

func TestLogprobsThatJSONCannotCarry(t *testing.T) {
	minus, nan := math.Inf(-1), math.NaN()
	choice := Choice{Tokens: []Token{{Text: "a", Logprob: &minus}, {Text: "\xff", Logprob: &nan}}}
	for _, endpoint := range []Endpoint{ChatCompletions, Completions} {
		request := &Request{Endpoint: endpoint, N: 1, Logprobs: number32(5)}
		body, err := Encode(request, &Reply{Choices: []Choice{choice}})
		if err != nil || !json.Valid(body) || !strings.Contains(string(body), "-9999") {
			t.Errorf("endpoint %d: got %s, %v", endpoint, body, err)
		}
	}
}

// BenchmarkDecode decodes a conversation of about 4,000 tokens with ten tools, as a client sends it in each turn.
func BenchmarkDecode(b *testing.B) {
	message := `{"role":"user","content":"` + strings.Repeat("word ", 100) + `"},{"role":"assistant","content":"` +
		strings.Repeat("answer ", 90) + `"}`
	tools := make([]string, 10)
	for i := range tools {
		tools[i] = `{"type":"function","function":{"name":"tool_` + string(rune('a'+i)) + `","parameters":{"type":"object"}}}`
	}
	body := []byte(`{"model":"m","tools":[` + strings.Join(tools, ",") + `],"messages":[` +
		strings.Repeat(message+",", 20) + message + `]}`)
	for b.Loop() {
		if _, err := Decode(ChatCompletions, body, testOptions(Ignore)); err != nil {
			b.Fatal(err)
		}
	}
}
