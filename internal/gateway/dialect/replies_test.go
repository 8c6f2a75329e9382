// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
)

// replies are the replies of the golden file, which has them in all dialects. test/dialects checks that official
// clients parse such replies.
var replies = map[string]Choice{
	"text": {
		Message: chat.Message{Content: "ab"}, Text: "ab", Prompt: "é", Stop: StopLength,
		Tokens: []Token{{Text: "a", Logprob: new(float64), Top: []Token{{Text: "a", Logprob: new(float64)},
			{Text: "c"}}}, {Text: "b"}},
		PromptTokens: []Token{{Text: "é"}},
	},
	"calls": {Stop: StopCalls, Message: chat.Message{Thinking: "r", Content: "t", Calls: []chat.ToolCall{
		{ID: "c1", Name: "add", Arguments: `{"a": "<\n>"}`}, {ID: "c2", Name: "sub", Arguments: `{}`},
	}}},
	"only a call": {Stop: StopCalls, Message: chat.Message{Calls: []chat.ToolCall{{ID: "c1", Name: "add",
		Arguments: `{}`}}}},
	"stop text": {Stop: StopSequence, StopText: "END", Text: "a", Message: chat.Message{Content: "a"}},
	"context":   {Stop: StopContext, Text: "a", Message: chat.Message{Content: "a"}},
	"empty":     {},
}

func TestRepliesInAllDialects(t *testing.T) {
	const golden = "testdata/replies.txt"
	var blocks []string
	for name, choice := range replies {
		for path, endpoint := range paths {
			if endpoint == CountTokens {
				continue
			}
			one := 1
			request := &Request{
				Endpoint: endpoint, N: 1, Echo: name == "text", Logprobs: &one, IncludeUsage: true, Instructions: "s",
				PreviousID: "p",
				Tools:      []chat.Tool{{Name: "add"}}, MaxTokens: &one,
			}
			reply := &Reply{
				ID: "id", Created: time.Unix(9, 0), Model: "m", Sign: testSign, Choices: []Choice{choice},
				Usage: Usage{Prompt: 9, Cached: 4, Completion: 3, Reasoning: 2},
			}
			body, err := Encode(request, reply)
			if err != nil {
				t.Fatal(err)
			}
			events, err := EncodeStream(request, reply)
			if err != nil {
				t.Fatal(err)
			}
			if !json.Valid(body) {
				t.Errorf("%s of %s is not JSON", name, path)
			}
			blocks = append(blocks, fmt.Sprintf("== %s, %s\n%s\n%s", path, name, body, events))
		}
	}
	slices.Sort(blocks)
	got := strings.Join(blocks, "")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(mustRead(t, golden)), got); diff != "" {
		t.Errorf("replies differ (-want +got); -update writes them:\n%s", diff)
	}
}

func TestStreamErrors(t *testing.T) {
	e := &Error{Kind: Overloaded, Message: "No."}
	cause := `{"message":"No.","type":"server_error","param":null,"code":"server_overloaded"}`
	for endpoint, want := range map[Endpoint]string{
		ChatCompletions: `data: {"error":` + cause + "}\n\ndata: [DONE]\n\n",
		Responses: `event: error` + "\n" + `data: {"type":"error","error":` + cause +
			`,"code":"server_overloaded","message":"No.","param":null,"sequence_number":0}` + "\n\n",
		Messages: "event: error\n" +
			`data: {"type":"error","error":{"type":"overloaded_error","message":"No."},"request_id":"r"}` + "\n\n",
	} {
		if diff := cmp.Diff(want, string(StreamError(endpoint, e, "r"))); diff != "" {
			t.Errorf("endpoint %d: events differ (-want +got):\n%s", endpoint, diff)
		}
	}
}

func TestNormal(t *testing.T) {
	for name, c := range map[string]struct{ given, want chat.Message }{
		"empty":      {chat.Message{Parts: []chat.Part{}}, chat.Message{}},
		"neighbours": {chat.Message{Parts: []chat.Part{{Text: "a"}, {}, {Text: "b"}}}, chat.Message{Content: "ab"}},
		"thoughts": {
			chat.Message{Parts: []chat.Part{{Text: "a", Thinking: true}, {Text: "b", Thinking: true}}},
			chat.Message{Thinking: "ab"},
		},
		"two": {
			chat.Message{Parts: []chat.Part{{Text: "a", Thinking: true}, {Text: "b"}}},
			chat.Message{Thinking: "a", Content: "b"},
		},
		"other order": {
			chat.Message{Parts: []chat.Part{{Text: "a"}, {Text: "b", Thinking: true}}},
			chat.Message{Parts: []chat.Part{{Text: "a"}, {Text: "b", Thinking: true}}},
		},
	} {
		if diff := cmp.Diff(c.want, Normal(c.given)); diff != "" {
			t.Errorf("%s: messages differ (-want +got):\n%s", name, diff)
		}
	}
}

func TestPiecesAreCutBetweenCharacters(t *testing.T) {
	for _, text := range []string{"", "a", strings.Repeat("é", 5000), "a" + strings.Repeat("\U0001f600", 3000),
		strings.Repeat("\x80", 9000)} {
		all := pieces(text)
		if strings.Join(all, "") != text {
			t.Errorf("the pieces of %q are not the text", text[:min(len(text), 9)])
		}
		for _, piece := range all {
			if len(piece) == 0 || len(piece) > 4096 || strings.ToValidUTF8(piece, "") != piece && text[0] != '\x80' {
				t.Errorf("a piece has %d bytes or is cut in a character", len(piece))
			}
		}
	}
}
