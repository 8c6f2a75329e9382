// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package chatjson

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
)

func TestRead(t *testing.T) {
	cases := map[string]struct {
		line string
		want renderer.Conversation
	}{
		"text": {
			line: `{"messages": [{"role": "user", "content": "q"}], "prefill": "So"}`,
			want: renderer.Conversation{Messages: []chat.Message{{Role: "user", Content: "q"}}, Prefill: "So"},
		},
		"no messages at all": {line: `{"messages": []}`, want: renderer.Conversation{Messages: []chat.Message{}}},
		"parts": {
			line: `{"messages": [{"role": "assistant", "content": [{"type": "thinking", "thinking": "r"}, {"type": "text", "text": ""}]}]}`,
			want: renderer.Conversation{Messages: []chat.Message{{Role: "assistant",
				Parts: []chat.Part{{Text: "r", Thinking: true}, {}}}}},
		},
		"no parts are not no text": {
			line: `{"messages": [{"role": "assistant", "content": []}]}`,
			want: renderer.Conversation{Messages: []chat.Message{{Role: "assistant", Parts: []chat.Part{}}}},
		},
		"calls and results": {
			line: `{"messages": [{"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}, {"function": {"name": "g"}}]}, {"role": "tool", "content": "r", "tool_call_id": "1", "name": "f"}]}`,
			want: renderer.Conversation{Messages: []chat.Message{
				{Role: "assistant", Calls: []chat.ToolCall{{ID: "1", Name: "f", Arguments: "{}"}, {Name: "g"}}},
				{Role: "tool", Content: "r", CallID: "1", Name: "f"},
			}},
		},
		"tools, bare and wrapped": {
			line: `{"messages": [], "tools": [{"name": "f", "description": "d", "parameters": {"b": 1, "a": 2}}, {"type": "function", "function": {"name": "g"}}]}`,
			want: renderer.Conversation{Messages: []chat.Message{},
				Tools: []chat.Tool{{Name: "f", Description: "d", Parameters: []byte(`{"b": 1, "a": 2}`)}, {Name: "g"}}},
		},
		"an empty list of tools is a list": {line: `{"messages": [], "tools": []}`,
			want: renderer.Conversation{Messages: []chat.Message{}, Tools: []chat.Tool{}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Read([]byte(tc.line))
			if err != nil {
				t.Fatalf("Read: %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Read (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadNamesTheField(t *testing.T) {
	cases := map[string]struct{ line, want string }{
		"no JSON":     {line: `{"messages"`, want: "unexpected EOF"},
		"no messages": {line: `{}`, want: "field messages is missing"},
		"a field misspelt": {line: `{"messages": [{"role": "user", "contnt": "q"}]}`,
			want: `messages[0]: unknown field "contnt": it would not be seen by the model; known are role, content`},
		"no role": {line: `{"messages": [{"content": "q"}]}`, want: "messages[0]: role is missing"},
		"content that is a number": {line: `{"messages": [{"role": "user", "content": 3}]}`,
			want: "messages[0]: content is neither"},
		"a part of another type": {line: `{"messages": [{"role": "user", "content": [{"type": "image"}]}]}`,
			want: `messages[0]: content[0]: a part of type "image"`},
		"a call without a name": {line: `{"messages": [{"role": "assistant", "tool_calls": [{"function": {}}]}]}`,
			want: "messages[0]: tool_calls[0]: function.name is missing"},
		"arguments that are an object": {
			line: `{"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}]}`,
			want: "tool_calls.function.arguments"},
		"a tool without a name": {line: `{"messages": [], "tools": [{}]}`, want: "tools[0]: name is missing"},
		"two values":            {line: `{"messages": []} {}`, want: "more than one JSON value"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := Read([]byte(tc.line)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Read: err = %v, want one that says %q", err, tc.want)
			}
		})
	}
}

func TestWrite(t *testing.T) {
	cases := map[string]struct {
		parsed renderer.Parsed
		want   string
	}{
		"text": {
			parsed: renderer.Parsed{Message: chat.Message{Role: "assistant", Content: "<b>", Sampled: []int32{1}}},
			want:   `{"message":{"role":"assistant","content":"<b>"},"ending":"stopped"}`,
		},
		"thinking without parts": {
			parsed: renderer.Parsed{Message: chat.Message{Role: "assistant", Thinking: "r", Content: "a"},
				Ending: renderer.Ended},
			want: `{"message":{"role":"assistant","content":[{"type":"thinking","thinking":"r"},{"type":"text","text":"a"}]},"ending":"ended"}`,
		},
		"calls, read and not": {
			parsed: renderer.Parsed{
				Message: chat.Message{Role: "assistant", Parts: []chat.Part{},
					Calls: []chat.ToolCall{{ID: "1", Name: "f", Arguments: "{}"}, {Name: "g", Arguments: "3"}}},
				Ending: renderer.Malformed, Problem: "p", Unparsed: []renderer.UnparsedCall{{Text: "<", Problem: "q"}},
			},
			want: `{"message":{"role":"assistant","content":[],"tool_calls":[{"type":"function","id":"1","function":{"name":"f","arguments":"{}"}},` +
				`{"type":"function","id":null,"function":{"name":"g","arguments":"3"}}]},"ending":"malformed","problem":"p","unparsed_tool_calls":[{"raw_text":"<","error":"q"}]}`,
		},
		"a reply that was cut": {parsed: renderer.Parsed{Message: chat.Message{Role: "assistant"},
			Ending: renderer.Truncated},
			want: `{"message":{"role":"assistant","content":""},"ending":"truncated"}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Write(tc.parsed)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("Write (-want +got):\n%s", diff)
			}
		})
	}
}
