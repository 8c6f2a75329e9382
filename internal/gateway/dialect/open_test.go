// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
)

// TestOpenRepliesAreBeginnings grows a reply with reasoning, text and a call piece by piece. The events of each state
// must be a prefix of the events of the next state, and the text must be among the events before the reply has ended.
func TestOpenRepliesAreBeginnings(t *testing.T) {
	call := chat.ToolCall{ID: "c", Name: "add", Arguments: `{}`}
	states := []Choice{
		{},
		{Message: chat.Message{Thinking: "One"}, Text: "One"},
		{Message: chat.Message{Thinking: "One two"}, Text: "One two"},
		{Message: chat.Message{Thinking: "One two", Content: "Fo"}, Text: "One twoFo"},
		{Message: chat.Message{Thinking: "One two", Content: "Four"}, Text: "One twoFour"},
	}
	pieces := []string{"One", " two", "Fo", "ur"}
	for path, endpoint := range paths {
		if endpoint == CountTokens {
			continue
		}
		t.Run(path, func(t *testing.T) {
			request := &Request{Endpoint: endpoint, N: 1, IncludeUsage: true, Stream: true}
			reply := &Reply{ID: "id", Created: time.Unix(9, 0), Model: "m", Sign: testSign, Open: true,
				Usage: Usage{Prompt: 9}}
			var before []byte
			for i, state := range states {
				state.Sent = pieces[:i]
				reply.Choices = []Choice{state}
				before = extend(t, request, reply, before)
			}
			if !bytes.Contains(before, []byte("ur")) {
				t.Errorf("the events are\n%s\nwant the text so far", before)
			}
			onlyThought := Choice{Message: states[2].Message, Sent: pieces[:2], Text: states[2].Text}
			reply.Choices = []Choice{onlyThought}
			thought := extend(t, request, reply, nil)
			onlyThought.Sent, onlyThought.Stop = pieces[:2], StopCalls
			onlyThought.Message.Calls = []chat.ToolCall{call}
			reply.Open, reply.Choices = false, []Choice{onlyThought}
			extend(t, request, reply, thought)
			last := states[len(states)-1]
			last.Sent, last.Stop, last.Message.Calls = pieces, StopCalls, []chat.ToolCall{call}
			reply.Open, reply.Choices, reply.Usage.Completion = false, []Choice{last}, 7
			extend(t, request, reply, before)
			last.Sent, last.Stop, last.Message.Calls = pieces, StopLength, nil
			reply.Choices = []Choice{last}
			extend(t, request, reply, before)
		})
	}
}

// extend returns the events of a reply, which must begin with those before.
func extend(t *testing.T, request *Request, reply *Reply, before []byte) []byte {
	t.Helper()
	events, err := EncodeStream(request, reply)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(events, before) {
		t.Fatalf("the events differ (-earlier +later):\n%s", cmp.Diff(string(before), string(events)))
	}
	return events
}

func TestSamplingOfTheCaller(t *testing.T) {
	const asked = `,"messages":[{"role":"user","content":"a"}]`
	for name, c := range map[string]struct {
		endpoint Endpoint
		fields   string
		want     Sampling
		ignored  []Field
		err      string
	}{
		"chat": {ChatCompletions, `"temperature":0.5,"top_p":0.9,"seed":-7,"top_k":5` + asked,
			Sampling{Temperature: new(0.5), TopP: new(0.9), TopK: new(5), Seed: new(int64(-7))}, nil, ""},
		"completions": {Completions, `"temperature":0,"prompt":"a"`, Sampling{Temperature: new(0.0)}, nil, ""},
		"messages": {Messages, `"temperature":1,"top_k":3,"max_tokens":4` + asked,
			Sampling{Temperature: new(1.0), TopK: new(3)}, nil, ""},
		"others are unsupported": {ChatCompletions, `"frequency_penalty":1` + asked, Sampling{},
			[]Field{{"frequency_penalty", "frequency_penalty"}}, ""},
		"neutral":        {ChatCompletions, `"presence_penalty":0,"temperature":null` + asked, Sampling{}, nil, ""},
		"too hot":        {ChatCompletions, `"temperature":-1` + asked, Sampling{}, nil, "between 0 and 100"},
		"no temperature": {Completions, `"temperature":"1","prompt":"a"`, Sampling{}, nil, "Expected a number"},
		"no seed":        {Completions, `"seed":1.5,"prompt":"a"`, Sampling{}, nil, "Expected an integer"},
	} {
		t.Run(name, func(t *testing.T) {
			options := testOptions(Ignore)
			options.CallerSamples = true
			got, err := Decode(c.endpoint, []byte(`{"model":"m",`+c.fields+"}"), options)
			if c.err != "" {
				if err == nil || !bytes.Contains([]byte(err.Error()), []byte(c.err)) {
					t.Fatalf("got the error %v, want one with %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.Sampling); diff != "" {
				t.Errorf("sampling (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.ignored, got.Ignored); diff != "" || len(got.Overruled) > 0 {
				t.Errorf("overruled %v; ignored (-want +got):\n%s", got.Overruled, diff)
			}
		})
	}
}
