// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build conformance

package dialects

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/gateway/dialect"
)

// endpoints are the paths with a codec.
var endpoints = map[string]dialect.Endpoint{
	"/v1/chat/completions":      dialect.ChatCompletions,
	"/v1/completions":           dialect.Completions,
	"/v1/responses":             dialect.Responses,
	"/v1/messages":              dialect.Messages,
	"/v1/messages/count_tokens": dialect.CountTokens,
}

// names are the names of the endpoints in the test data.
var names = map[dialect.Endpoint]string{
	dialect.ChatCompletions: "chat/completions", dialect.Completions: "completions", dialect.Responses: "responses",
	dialect.Messages: "messages", dialect.CountTokens: "messages/count_tokens",
}

var created = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// logprob returns the address of a number.
func logprob(v float64) *float64 { return &v }

// canned are the replies, by the model that a request asks for.
var canned = map[string]dialect.Choice{
	"text":     {Message: chat.Message{Content: "Four. ✓ \U0001f600 <b>&amp;</b>\n"}, Text: "Four. ✓", Prompt: "2+2="},
	"empty":    {Message: chat.Message{}},
	"thinking": {Message: chat.Message{Thinking: "2+2\nis 4.", Content: "Four."}},
	"long": {
		Message: chat.Message{Thinking: strings.Repeat("é✓\U0001f600a", 2000), Content: strings.Repeat("日本 ", 3000)},
	},
	"call": {Stop: dialect.StopCalls, Message: chat.Message{
		Calls: []chat.ToolCall{{ID: "call_1", Name: "add", Arguments: `{"a": 2, "b": 2}`}},
	}},
	"parallel": {Stop: dialect.StopCalls, Message: chat.Message{
		Thinking: "Both.", Content: "I ask twice.", Calls: []chat.ToolCall{
			{ID: "call_1", Name: "add", Arguments: `{"a": 2.5, "b": [1, {"c": "ü\n"}]}`},
			{ID: "call_2", Name: "sub", Arguments: `{}`},
		},
	}},
	"alternating": {Message: chat.Message{Parts: []chat.Part{
		{Text: "First.", Thinking: true}, {Text: "One."}, {Text: "Second.", Thinking: true}, {Text: "Two."},
	}}},
	"length": {Stop: dialect.StopLength, Message: chat.Message{Content: "Four and"}, Text: "Four and", Prompt: "2+2="},
	"stop":   {Stop: dialect.StopSequence, StopText: "END", Message: chat.Message{Content: "Four"}, Text: "Four"},
	"logprobs": {
		Message: chat.Message{Content: "ab"}, Text: "ab", Prompt: "xy",
		Tokens: []dialect.Token{
			{Text: "a", Logprob: logprob(-0.5), Top: []dialect.Token{{Text: "c", Logprob: logprob(-0.25)}}},
			{Text: "b", Logprob: logprob(-1)},
		},
		PromptTokens: []dialect.Token{{Text: "x"}, {Text: "y", Logprob: logprob(-2)}},
	},
}

// kinds are the errors, by the model error/NAME that a request asks for.
var kinds = map[string]*dialect.Error{
	"invalid":    {Kind: dialect.InvalidRequest, Message: "No.", Param: "messages"},
	"large":      {Kind: dialect.TooLarge, Message: "Too large."},
	"auth":       {Kind: dialect.Authentication, Message: "The key is wrong."},
	"permission": {Kind: dialect.Permission, Message: "Not yours."},
	"notfound":   {Kind: dialect.NotFound, Message: "No such model.", Param: "model"},
	"context":    {Kind: dialect.ContextLength, Tokens: 5000, Limit: 4096},
	"quota":      {Kind: dialect.Quota, Message: "The episode has used its tokens."},
	"rate":       {Kind: dialect.RateLimit, Message: "Wait."},
	"overloaded": {Kind: dialect.Overloaded, Message: "Overloaded.", RetryAfter: 1},
	"internal":   {Kind: dialect.Internal, Message: "Broken."},
}

// recorded is a request that a client has made.
type recorded struct {
	Name     string          `json:"name"`
	Endpoint string          `json:"endpoint"`
	Body     json.RawMessage `json:"body"`
}

// server answers with canned replies and records the requests.
type server struct {
	t        *testing.T
	mu       sync.Mutex
	requests []recorded
	attempts map[string]int
}

func sign(thinking string) string { return fmt.Sprintf("signature-of-%d-bytes", len(thinking)) }

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	words := dialect.OpenAI
	if r.Header.Get("Anthropic-Version") != "" {
		words = dialect.Anthropic
	}
	model := dialect.Model{Name: "policy", Created: created}
	switch endpoint, ok := endpoints[r.URL.Path]; {
	case ok:
		s.answer(w, r, endpoint)
	case r.URL.Path == "/canned":
		if err := json.NewEncoder(w).Encode(plain()); err != nil {
			s.t.Error(err)
		}
	case r.URL.Path == "/v1/models":
		w.Write(dialect.EncodeModels(words, []dialect.Model{model, {Name: "judge", Created: created}}))
	case r.URL.Path == "/v1/models/policy":
		w.Write(dialect.EncodeModel(words, model))
	default:
		s.fail(w, words, &dialect.Error{Kind: dialect.NotFound, Message: "No such path."})
	}
}

// plain returns the canned replies for the script that compares them.
func plain() map[string]any {
	all := map[string]any{}
	for name, choice := range canned {
		m := dialect.Normal(choice.Message)
		parts := []map[string]any{}
		for _, part := range m.AllParts() {
			if part.Text != "" {
				parts = append(parts, map[string]any{"text": part.Text, "thinking": part.Thinking})
			}
		}
		calls := []map[string]string{}
		for _, call := range m.Calls {
			calls = append(calls, map[string]string{"id": call.ID, "name": call.Name, "arguments": call.Arguments})
		}
		all[name] = map[string]any{"parts": parts, "calls": calls}
	}
	return all
}

func (s *server) fail(w http.ResponseWriter, words dialect.Dialect, e *dialect.Error) {
	for name, values := range e.Header(words) {
		w.Header()[name] = values
	}
	w.WriteHeader(e.Status(words))
	w.Write(e.Body(words, "req_1"))
}

// record keeps a request, and counts how often the client has sent it.
func (s *server) record(r *http.Request, endpoint dialect.Endpoint, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := r.Header.Get("X-Record")
	s.attempts[name]++
	if name == "" || s.attempts[name] > 1 {
		return
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, body); err != nil {
		s.t.Errorf("request %s: %v", name, err)
	}
	s.requests = append(s.requests, recorded{name, names[endpoint], compact.Bytes()})
}

func (s *server) answer(w http.ResponseWriter, r *http.Request, endpoint dialect.Endpoint) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
		return
	}
	s.record(r, endpoint, body)
	words := endpoint.Dialect()
	request, err := dialect.Decode(endpoint, body, dialect.Options{
		Limits: dialect.DefaultLimits(),
		Verify: func(thinking, signature string) bool { return signature == sign(thinking) },
	})
	if err != nil {
		s.fail(w, words, err.(*dialect.Error)) //nolint:errorlint // Decode says that it is one.
		return
	}
	if endpoint == dialect.CountTokens {
		w.Write(dialect.EncodeCount(42))
		return
	}
	if e, ok := kinds[strings.TrimPrefix(request.Model, "error/")]; ok {
		s.fail(w, words, e)
		return
	}
	s.reply(w, endpoint, request)
}

func (s *server) reply(w http.ResponseWriter, endpoint dialect.Endpoint, request *dialect.Request) {
	choice, ok := canned[request.Model]
	if name, returned := strings.CutPrefix(request.Model, "returned/"); returned {
		choice = dialect.Choice{Message: chat.Message{Content: compare(endpoint, request, canned[name].Message)}}
	} else if !ok {
		choice = canned["text"]
	}
	prefix := map[dialect.Endpoint]string{
		dialect.ChatCompletions: "chatcmpl-", dialect.Completions: "cmpl-", dialect.Responses: "resp_",
		dialect.Messages: "msg_",
	}
	reply := &dialect.Reply{
		ID: prefix[endpoint] + "1", Created: created, Model: request.Model, Sign: sign,
		Choices: slices.Repeat([]dialect.Choice{choice}, request.N*max(len(request.Prompts), 1)),
		Usage:   dialect.Usage{Prompt: 30, Cached: 10, Completion: 12, Reasoning: 5},
	}
	if !request.Stream {
		body, err := dialect.Encode(request, reply)
		if err != nil {
			s.t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(body)
		return
	}
	events, err := dialect.EncodeStream(request, reply)
	if err != nil {
		s.t.Error(err)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Write(dialect.KeepAlive(endpoint.Dialect()))
	if request.Model == "broken" {
		if end := bytes.LastIndex(events, []byte("event: message_stop")); end >= 0 {
			events = events[:end]
		}
		events = bytes.TrimSuffix(events, []byte("data: [DONE]\n\n"))
		events = append(events, dialect.StreamError(endpoint, kinds["overloaded"], "req_1")...)
	}
	w.Write(events)
}

// compare returns "same" if the request has the reply as its only assistant's message, and the difference otherwise.
func compare(endpoint dialect.Endpoint, request *dialect.Request, reply chat.Message) string {
	want := dialect.Normal(reply)
	if endpoint == dialect.ChatCompletions && want.Parts != nil {
		return "chat/completions loses the order of parts"
	}
	want.Role = chat.RoleAssistant
	var got []chat.Message
	for _, m := range request.Messages {
		if m.Role == chat.RoleAssistant {
			got = append(got, m)
		}
	}
	sameJSON := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Arguments" },
		cmp.Comparer(func(a, b string) bool {
			var left, right any
			return json.Unmarshal([]byte(a), &left) == nil && json.Unmarshal([]byte(b), &right) == nil && cmp.Equal(left, right)
		}))
	if diff := cmp.Diff([]chat.Message{want}, got, cmpopts.EquateEmpty(), sameJSON); diff != "" {
		return "got (+) and want (-) differ:\n" + diff
	}
	return "same"
}
