// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/gateway/dialect"
)

// scripted is a policy whose answers a function returns.
type scripted struct {
	environment.AgentPolicy
	complete func(ctx context.Context, asked environment.Completion) (environment.Completed, error)

	mu    sync.Mutex
	asked []environment.Completion
}

func (s *scripted) Complete(ctx context.Context, asked environment.Completion) (environment.Completed, error) {
	s.mu.Lock()
	s.asked = append(s.asked, asked)
	n := len(s.asked)
	s.mu.Unlock()
	if s.complete != nil {
		return s.complete(ctx, asked)
	}
	return saying(n, "Four."), nil
}

func (s *scripted) CountTokens(asked environment.Completion) (int, error) {
	return 10 * len(asked.Messages), nil
}

func (s *scripted) times() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// saying returns the n-th reply.
func saying(n int, text string) environment.Completed {
	return environment.Completed{ID: fmt.Sprintf("%016x", n), PromptTokens: 7, Tokens: []int32{1, 2},
		Message: chat.Message{Role: chat.RoleAssistant, Content: text}, Text: text}
}

// served returns a gateway with one episode, which listens at an address.
func served(t *testing.T, config Config, policy environment.AgentPolicy, options Options) (*Server, *Episode) {
	t.Helper()
	config.Logger = slog.New(slog.DiscardHandler)
	s := New("", config)
	web := httptest.NewServer(s)
	s.address = web.URL
	e := s.Open(t.Context(), policy, options)
	t.Cleanup(func() { e.Close(); web.Close() })
	return s, e
}

// ask posts a body and returns the status and the body of the answer.
func ask(t *testing.T, e *Episode, path, body string) (int, http.Header, string) {
	t.Helper()
	response := post(t, t.Context(), e, e.token, path, body)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(text)
}

func post(t *testing.T, ctx context.Context, e *Episode, token, path, body string) *http.Response {
	t.Helper()
	response, err := send(ctx, e, token, path, body)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func send(ctx context.Context, e *Episode, token, path, body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL(dialect.OpenAI)+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	return http.DefaultClient.Do(request)
}

const (
	chatBody     = `{"model": "gpt-5", "messages": [{"role": "user", "content": "2+2?"}]}`
	messagesBody = `{"model": "claude", "max_tokens": 9, "messages": [{"role": "user", "content": "2+2?"}]}`
)

func TestTokensOfEpisodes(t *testing.T) {
	s, e := served(t, Config{}, &scripted{}, Options{})
	other := s.Open(t.Context(), &scripted{}, Options{})
	for name, token := range map[string]string{"none": "", "another episode's": other.token, "a wrong one": "x"} {
		response := post(t, t.Context(), e, token, "/chat/completions", chatBody)
		response.Body.Close()
		if got, want := response.StatusCode, http.StatusUnauthorized; got != want {
			t.Errorf("%s: got status %d, want %d", name, got, want)
		}
	}
	if status, _, body := ask(t, e, "/chat/completions", chatBody); status != http.StatusOK {
		t.Errorf("got status %d: %s", status, body)
	}
	e.End()
	if status, _, body := ask(t, e, "/chat/completions", chatBody); status != http.StatusUnauthorized {
		t.Errorf("after the end: got status %d: %s", status, body)
	}
	if status, _, body := ask(t, other, "/chat/completions", chatBody); status != http.StatusOK {
		t.Errorf("another episode: got status %d: %s", status, body)
	}
}

// at reads a value of JSON by a path of names and indexes.
func at(t *testing.T, body string, path ...any) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(body), &value); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	for _, step := range path {
		switch step := step.(type) {
		case string:
			object, _ := value.(map[string]any)
			value = object[step]
		case int:
			if list, ok := value.([]any); ok && step < len(list) {
				value = list[step]
			} else {
				value = nil
			}
		}
	}
	return value
}

func TestReplies(t *testing.T) {
	_, e := served(t, Config{}, &scripted{}, Options{})
	cases := map[string]struct {
		path, body string
		text       []any
		tokens     []any
	}{
		"chat/completions": {"/chat/completions", chatBody, []any{"choices", 0, "message", "content"},
			[]any{"usage", "total_tokens"}},
		"completions": {"/completions", `{"model": "m", "prompt": "2+2="}`, []any{"choices", 0, "text"},
			[]any{"usage", "total_tokens"}},
		"responses": {"/responses", `{"model": "m", "input": "2+2?"}`, []any{"output", 0, "content", 0, "text"},
			[]any{"usage", "total_tokens"}},
		"messages": {"/messages", messagesBody, []any{"content", 0, "text"}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status, _, body := ask(t, e, tc.path, tc.body)
			if got := at(t, body, tc.text...); status != http.StatusOK || got != "Four." {
				t.Errorf("got status %d and text %v: %s", status, got, body)
			}
			if tc.tokens != nil && at(t, body, tc.tokens...) != 9.0 {
				t.Errorf("got %v tokens, want 9: %s", at(t, body, tc.tokens...), body)
			}
			streamed := strings.Replace(tc.body, "{", `{"stream": true, `, 1)
			status, header, body := ask(t, e, tc.path, streamed)
			if !strings.Contains(body, "Four.") || status != http.StatusOK ||
				header.Get("Content-Type") != "text/event-stream" {
				t.Errorf("stream: got status %d, header %v, body %s", status, header, body)
			}
		})
	}
	if _, _, body := ask(t, e, "/messages/count_tokens", messagesBody); at(t, body, "input_tokens") != 10.0 {
		t.Errorf("count_tokens: got %s, want 10", body)
	}
	if !e.End().IsWhole() {
		t.Errorf("the end is %+v, want one at which everything was answered", e.End())
	}
}

func TestModelsAreRoles(t *testing.T) {
	policy := &scripted{}
	_, e := served(t, Config{}, policy, Options{Roles: []string{"solver", "judge"}})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.URL(dialect.OpenAI)+"/models", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Api-Key", e.token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	list, _ := io.ReadAll(response.Body)
	if at(t, string(list), "data", 0, "id") != "solver" || at(t, string(list), "data", 1, "id") != "judge" {
		t.Errorf("models are %s", list)
	}
	if status, _, body := ask(t, e, "/chat/completions", chatBody); status != http.StatusNotFound ||
		at(t, body, "error", "code") != "model_not_found" {
		t.Errorf("an unknown model: got status %d: %s", status, body)
	}
	ask(t, e, "/chat/completions", strings.Replace(chatBody, "gpt-5", "judge", 1))
	if got := policy.asked[0].Role; got != "judge" {
		t.Errorf("got role %q, want judge", got)
	}
}

// TestFrozenModels asks a frozen model, which models lists, and a model that does not exist.
func TestFrozenModels(t *testing.T) {
	policy := &scripted{}
	_, e := served(t, Config{}, policy, Options{Frozen: map[string]environment.FrozenModel{"teacher": nil}})
	if got := e.models(); len(got) != 2 || got[0].Name != DefaultModel || got[1].Name != "frozen/teacher" {
		t.Errorf("models are %+v", got)
	}
	status, _, body := ask(t, e, "/chat/completions", strings.Replace(chatBody, "gpt-5", "frozen/teacher", 1))
	if status != http.StatusOK || policy.asked[0].FrozenName != "teacher" || policy.asked[0].Role != "" ||
		at(t, body, "model") != "frozen/teacher" {
		t.Errorf("got status %d: %s", status, body)
	}
	status, _, body = ask(t, e, "/messages", strings.Replace(messagesBody, "claude", "frozen/judge", 1))
	if status != http.StatusNotFound || policy.times() != 1 {
		t.Errorf("an unknown one: got status %d: %s, and the policy was asked %d times", status, body, policy.times())
	}
}

// blocked returns a policy that answers when it is released, and signals each request.
func blocked() (policy *scripted, asked chan struct{}, release func()) {
	asked, released := make(chan struct{}, 100), make(chan struct{})
	policy = &scripted{}
	policy.complete = func(ctx context.Context, _ environment.Completion) (environment.Completed, error) {
		n := policy.times()
		asked <- struct{}{}
		select {
		case <-released:
			return saying(n, fmt.Sprint("reply ", n)), nil
		case <-ctx.Done():
			return environment.Completed{}, ctx.Err()
		}
	}
	return policy, asked, sync.OnceFunc(func() { close(released) })
}

// held counts the calls that clients wait for, and all calls.
func held(e *Episode) (waiting, all int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, list := range e.calls {
		for _, c := range list {
			all++
			if c.held {
				waiting++
			}
		}
	}
	return waiting, all
}

// await waits for a state.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waiting for %s", what)
		}
	}
}

// TestRequestsContinueAfterTheirClient makes a request whose client goes away and asks again, as clients do after a
// timeout: the policy is asked once. Equal requests on two open connections are two requests.
func TestRequestsContinueAfterTheirClient(t *testing.T) {
	policy, asked, release := blocked()
	_, e := served(t, Config{}, policy, Options{})
	gone, leave := context.WithCancel(t.Context())
	go func() {
		if response, err := send(gone, e, e.token, "/chat/completions", chatBody); err == nil {
			response.Body.Close()
		}
	}()
	<-asked
	leave()
	await(t, "the client to be gone", func() bool { waiting, all := held(e); return waiting == 0 && all == 1 })
	texts := make(chan string, 2)
	for range 2 {
		go func() {
			response, err := send(t.Context(), e, e.token, "/chat/completions", chatBody)
			if err != nil {
				texts <- err.Error()
				return
			}
			defer response.Body.Close()
			body, _ := io.ReadAll(response.Body)
			texts <- string(body)
		}()
	}
	await(t, "both clients", func() bool { waiting, all := held(e); return waiting == 2 && all == 2 })
	release()
	first, second := <-texts, <-texts
	if a, b := at(t, first, "id"), at(t, second, "id"); a == b || a == nil || b == nil {
		t.Errorf("two open requests have the replies\n%s\n%s", first, second)
	}
	if got := policy.times(); got != 2 {
		t.Errorf("the policy was asked %d times, want twice", got)
	}
	if ending := e.End(); !ending.IsWhole() {
		t.Errorf("the end is %+v, want everything answered", ending)
	}
}

// TestOutages asks a policy that does not answer in time: clients receive the error on which they come back, and then
// continue their request.
func TestOutages(t *testing.T) {
	for path, tc := range map[string]struct {
		body   string
		status int
	}{"/chat/completions": {chatBody, 503}, "/messages": {messagesBody, 529}} {
		policy, asked, release := blocked()
		s, e := served(t, Config{AnswerWithin: time.Nanosecond}, policy, Options{})
		status, header, body := ask(t, e, path, tc.body)
		if status != tc.status || header.Get("Retry-After") != "5" {
			t.Errorf("%s: got status %d, header %v: %s; want %d and to come back", path, status, header, body, tc.status)
		}
		<-asked
		await(t, "the handler", func() bool { waiting, _ := held(e); return waiting == 0 })
		if ending := e.End(); ending != (Ending{Refused: 1}) {
			t.Errorf("%s: the end is %+v, want one refused request", path, ending)
		}
		s.config.AnswerWithin = time.Hour
		s.mu.Lock()
		s.episodes[e.id], e.over = e, false
		s.mu.Unlock()
		release()
		if status, _, body := ask(t, e, path, tc.body); status != http.StatusOK || policy.times() != 1 {
			t.Errorf("%s: got status %d after %d requests, want the reply of the first: %s", path, status, policy.times(), body)
		}
		if ending := e.End(); !ending.IsWhole() {
			t.Errorf("%s: the end is %+v, want everything answered", path, ending)
		}
	}
}

// TestUnansweredRequests ends an agent while a request is open, and waits for the reply.
func TestUnansweredRequests(t *testing.T) {
	policy, asked, release := blocked()
	_, e := served(t, Config{}, policy, Options{})
	gone, leave := context.WithCancel(t.Context())
	defer leave()
	go func() {
		if response, err := send(gone, e, e.token, "/chat/completions", chatBody); err == nil {
			response.Body.Close()
		}
	}()
	<-asked
	leave()
	if ending := e.End(); ending != (Ending{Unanswered: 1}) {
		t.Errorf("the end is %+v, want one unanswered request", ending)
	}
	await(t, "the client to be gone", func() bool { waiting, _ := held(e); return waiting == 0 })
	settled := make(chan error, 1)
	go func() { settled <- e.Settle(t.Context()) }()
	release()
	if err := <-settled; err != nil {
		t.Error(err)
	}
	if ending := e.End(); ending != (Ending{Left: 1}) {
		t.Errorf("the end is %+v, want one request that was left", ending)
	}
}

// TestStreamsAreKeptAlive reads the events before the reply.
func TestStreamsAreKeptAlive(t *testing.T) {
	for path, tc := range map[string]struct{ body, first string }{
		"/chat/completions": {chatBody, ": keep-alive"}, "/messages": {messagesBody, "event: ping"},
	} {
		policy, _, release := blocked()
		_, e := served(t, Config{KeepAlive: time.Millisecond, AnswerWithin: time.Nanosecond}, policy, Options{})
		response := post(t, t.Context(), e, e.token, path, strings.Replace(tc.body, "{", `{"stream": true, `, 1))
		reader := bufio.NewReader(response.Body)
		line, err := reader.ReadString('\n')
		if err != nil || strings.TrimSpace(line) != tc.first {
			t.Errorf("%s: the stream begins with %q (%v), want %q", path, line, err, tc.first)
		}
		release()
		rest, err := io.ReadAll(reader)
		if err != nil || !bytes.Contains(rest, []byte("reply 1")) {
			t.Errorf("%s: the stream continues with %s (%v)", path, rest, err)
		}
		response.Body.Close()
	}
}

// TestErrorsOfThePolicy checks that errors of the policy are reported in the words of the dialect, and end nothing.
func TestErrorsOfThePolicy(t *testing.T) {
	cases := map[string]struct {
		err       error
		path      string
		status    int
		says      string
		isLimited bool
	}{
		"tokens": {&environment.LimitError{Limit: "trajectory_tokens", Tokens: 50, Most: 40}, "/chat/completions", 400,
			"context_length_exceeded", false},
		"tokens of Anthropic": {&environment.LimitError{Limit: "trajectory_tokens", Tokens: 50, Most: 40}, "/messages", 400,
			"prompt is too long: 50 tokens > 40 maximum", false},
		"requests": {&environment.LimitError{Limit: "requests"}, "/chat/completions", 429, "insufficient_quota", true},
		"requests of Anthropic": {&environment.LimitError{Limit: "requests"}, "/messages", 402, "billing_error",
			true},
		"a conversation without a " +
			"format": {&environment.RequestError{Message: "No."}, "/chat/completions", 400, "No.", false},
		"the end": {errors.New("the episode has ended"), "/chat/completions", 429, "has " +
			"ended", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, e := served(t, Config{}, &scripted{complete: func(context.Context,
				environment.Completion) (environment.Completed, error) {
				return environment.Completed{}, tc.err
			}}, Options{})
			body := chatBody
			if tc.path == "/messages" {
				body = messagesBody
			}
			status, _, answer := ask(t, e, tc.path, body)
			if status != tc.status || !strings.Contains(answer, tc.says) {
				t.Errorf("got status %d: %s; want %d and %q", status, answer, tc.status, tc.says)
			}
			isLimited := false
			select {
			case <-e.Limited():
				isLimited = true
			default:
			}
			if isLimited != tc.isLimited {
				t.Errorf("limited: got %v, want %v", isLimited, tc.isLimited)
			}
		})
	}
}

func TestPanicsOfThePolicy(t *testing.T) {
	policy := &scripted{complete: func(context.Context, environment.Completion) (environment.Completed, error) {
		panic("index out of range")
	}}
	_, e := served(t, Config{}, policy, Options{})
	if status, _, body := ask(t, e, "/chat/completions", chatBody); status == http.StatusOK {
		t.Errorf("got status %d: %s", status, body)
	}
	policy.complete = nil
	if status, _, body := ask(t, e, "/chat/completions", chatBody); status != http.StatusOK {
		t.Errorf("after a panic: got status %d: %s", status, body)
	}
}

// TestBadRequests checks that bad requests lead to errors of the dialect, and end nothing.
func TestBadRequests(t *testing.T) {
	messages := strings.Repeat(`{"role": "user", "content": "x"},`, 10_000)
	cases := map[string]struct {
		body   string
		status int
	}{
		"no JSON":          {`{"model": `, 400},
		"no model":         {`{"messages": []}`, 400},
		"an unknown role":  {`{"model": "m", "messages": [{"role": "wizard", "content": "x"}]}`, 400},
		"an image":         {`{"model": "m", "messages": [{"role": "user", "content": [{"type": "image_url"}]}]}`, 400},
		"10,000 messages":  {`{"model": "m", "messages": [` + messages[:len(messages)-1] + `]}`, 400},
		"50 MB":            {`{"model": "` + strings.Repeat("x", 50<<20) + `"}`, 413},
		"a malformed call": {`{"model": "m", "messages": [{"role": "assistant", "tool_calls": [{"id": 1}]}]}`, 400},
	}
	_, e := served(t, Config{}, &scripted{}, Options{})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status, _, answer := ask(t, e, "/chat/completions", tc.body)
			if status != tc.status || at(t, answer, "error", "type") == nil {
				t.Errorf("got status %d: %.300s; want %d", status, answer, tc.status)
			}
		})
	}
	if status, _, body := ask(t, e, "/chat/completions", chatBody); status != http.StatusOK {
		t.Errorf("afterwards: got status %d: %s", status, body)
	}
	if status, _, body := ask(t, e, "/embeddings", chatBody); status != http.StatusNotFound {
		t.Errorf("another path: got status %d: %s", status, body)
	}
}

// TestBodiesThatDoNotEnd checks that a request is refused if its body does not end in time.
func TestBodiesThatDoNotEnd(t *testing.T) {
	_, e := served(t, Config{BodyWithin: time.Millisecond}, &scripted{}, Options{})
	body, writer := io.Pipe()
	defer writer.Close()
	go func() { _, _ = io.WriteString(writer, `{"model": "m", `) }()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.URL(dialect.OpenAI)+"/chat/completions",
		body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+e.token)
	response, err := http.DefaultClient.Do(request)
	if err == nil {
		response.Body.Close()
		if response.StatusCode != http.StatusBadRequest {
			t.Errorf("got status %d, want 400", response.StatusCode)
		}
	}
}

// TestOptionsAreCounted counts the options by which requests differ from the run's sampling, once for each request.
func TestOptionsAreCounted(t *testing.T) {
	_, e := served(t, Config{}, &scripted{}, Options{})
	body := strings.Replace(chatBody, "{",
		`{"temperature": 0.1, "response_format": {"type": "json_object"}, "mystery": 1,`, 1)
	for range 2 {
		if status, _, answer := ask(t, e, "/chat/completions", body); status != http.StatusOK {
			t.Fatalf("got status %d: %s", status, answer)
		}
	}
	want := map[string]float64{"overruled_temperature": 2, "ignored_response_format": 2, "ignored_unknown": 2,
		"options_ignored": 2}
	if diff := cmp.Diff(want, e.Counts()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	_, strict := served(t, Config{}, &scripted{}, Options{Unsupported: dialect.Refuse})
	if status, _, answer := ask(t, strict, "/chat/completions", body); status != http.StatusBadRequest {
		t.Errorf("refused: got status %d: %s", status, answer)
	}
}

// TestAlternativesAreUnsupported asks for the likeliest alternatives to each token, also in an echoed prompt. An
// episode has none, so the option is counted or refused. Log-probabilities without alternatives are given.
func TestAlternativesAreUnsupported(t *testing.T) {
	text := `{"model": "m", "prompt": "xy", "echo": true, "max_tokens": 1, "logprobs": %d}`
	chats := strings.Replace(chatBody, "{", `{"logprobs": true, "top_logprobs": %d,`, 1)
	_, e := served(t, Config{}, &scripted{}, Options{})
	_, strict := served(t, Config{}, &scripted{}, Options{Unsupported: dialect.Refuse})
	for path, body := range map[string]string{"/completions": text, "/chat/completions": chats} {
		for alternatives, refused := range map[int]int{0: http.StatusOK, 3: http.StatusBadRequest} {
			if status, _, answer := ask(t, e, path, fmt.Sprintf(body, alternatives)); status != http.StatusOK {
				t.Errorf("%s with %d: got status %d: %s", path, alternatives, status, answer)
			}
			if status, _, answer := ask(t, strict, path, fmt.Sprintf(body, alternatives)); status != refused {
				t.Errorf("%s with %d, which is refused: got status %d: %s", path, alternatives, status, answer)
			}
		}
	}
	want := map[string]float64{"ignored_logprobs": 1, "ignored_top_logprobs": 1, "options_ignored": 2}
	if diff := cmp.Diff(want, e.Counts()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

// TestResponsesContinue makes requests that name the response that they continue.
func TestResponsesContinue(t *testing.T) {
	policy := &scripted{}
	_, e := served(t, Config{}, policy, Options{})
	_, _, first := ask(t, e, "/responses", `{"model": "m", "instructions": "Be brief.", "input": "2+2?"}`)
	id := at(t, first, "id")
	const after = `{"model": "m", "input": "and %d?", "previous_response_id": %q}`
	_, _, second := ask(t, e, "/responses", fmt.Sprintf(after, 3, id))
	ask(t, e, "/responses", fmt.Sprintf(after, 4, at(t, second, "id")))
	var got []string
	for _, m := range policy.asked[2].Messages {
		got = append(got, m.Role+": "+m.Content)
	}
	want := []string{"user: 2+2?", "assistant: Four.", "user: and 3?", "assistant: Four.", "user: and 4?"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the conversation (-want +got):\n%s", diff)
	}
	status, _, answer := ask(t, e, "/responses", `{"model": "m", "input": "x", "previous_response_id": "resp_x"}`)
	if status != http.StatusBadRequest || at(t, answer, "error", "code") != "previous_response_not_found" {
		t.Errorf("an unknown response: got status %d: %s", status, answer)
	}
}

// TestChoices asks for several samples in one request: they are in the order of their IDs, whichever comes first.
func TestChoices(t *testing.T) {
	_, e := served(t, Config{}, &scripted{}, Options{})
	_, _, body := ask(t, e, "/chat/completions", strings.Replace(chatBody, "{", `{"n": 3, `, 1))
	if at(t, body, "choices", 2, "message", "content") != "Four." || at(t, body, "choices", 3) != nil ||
		at(t, body, "usage", "prompt_tokens") != 7.0 || at(t, body, "usage", "completion_tokens") != 6.0 {
		t.Errorf("got %s, want three choices", body)
	}
}

// TestEchoedPromptsAreScored checks that the log-probabilities of a prompt come with one of its choices, or without a
// reply.
func TestEchoedPromptsAreScored(t *testing.T) {
	policy := &scripted{complete: func(_ context.Context, asked environment.Completion) (environment.Completed, error) {
		out := environment.Completed{ID: "1", PromptText: "xy", PromptTokens: 2, Truncated: true}
		if asked.Scored {
			out.ID, out.PromptTexts, out.PromptLogprobs = "2", []string{"x", "y"}, []float32{-0.5}
		}
		if !asked.Unanswered {
			out.Text, out.Tokens, out.Texts, out.Logprobs = "z", []int32{9}, []string{"z"}, []float32{-0.25}
		}
		return out, nil
	}}
	_, e := served(t, Config{}, policy, Options{})
	for body, want := range map[string][]any{
		`{"model": "m", "prompt": "xy", "echo": true, "logprobs": 1, "max_tokens": 0}`:         {"xy", nil, -0.5},
		`{"model": "m", "prompt": "xy", "echo": true, "logprobs": 0, "n": 2, "max_tokens": 1}`: {"xyz", nil, -0.5, -0.25},
		`{"model": "m", "prompt": "xy", "max_tokens": 0}`:                                      {""},
	} {
		status, _, answer := ask(t, e, "/completions", body)
		got := []any{}
		for i := range want[1:] {
			got = append(got, at(t, answer, "choices", 0, "logprobs", "token_logprobs", i))
		}
		if diff := cmp.Diff(want[1:], got); diff != "" || at(t, answer, "choices", 0, "text") != want[0] ||
			at(t, answer, "usage", "prompt_tokens") != 2.0 {
			t.Errorf("%s has status %d: %s", body, status, answer)
		}
	}
	scored := 0
	for _, asked := range policy.asked {
		if asked.Scored {
			scored++
		}
	}
	if scored != 2 {
		t.Errorf("prompts were scored %d times, want twice", scored)
	}
}

// TestOpenRequestsAreBounded checks that a request is refused while the limit of open requests is reached.
func TestOpenRequestsAreBounded(t *testing.T) {
	policy, asked, release := blocked()
	_, e := served(t, Config{Open: 1, AnswerWithin: time.Nanosecond}, policy, Options{})
	ask(t, e, "/chat/completions", chatBody)
	<-asked
	if status, _, body := ask(t, e, "/messages", messagesBody); status != http.StatusTooManyRequests {
		t.Errorf("got status %d: %s; want 429", status, body)
	}
	release()
}

// ending is a writer that ends the episode while the reply is being written, like an agent that has read the reply.
type ending struct {
	*httptest.ResponseRecorder
	end func()
}

func (e *ending) Write(p []byte) (int, error) {
	e.end()
	return e.ResponseRecorder.Write(p)
}

// TestAgentsMayEndWithTheirReply ends an agent once it has its reply, before the gateway has returned from writing it.
func TestAgentsMayEndWithTheirReply(t *testing.T) {
	s, e := served(t, Config{}, &scripted{}, Options{})
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/"+e.id+"/v1/chat/completions",
		strings.NewReader(chatBody))
	request.Header.Set("Authorization", "Bearer "+e.token)
	w := &ending{ResponseRecorder: httptest.NewRecorder(), end: func() {
		if got := e.End(); !got.IsWhole() {
			t.Errorf("the end is %+v, want everything answered", got)
		}
	}}
	s.ServeHTTP(w, request)
	if w.Code != http.StatusOK {
		t.Errorf("got status %d: %s", w.Code, w.Body)
	}
}

// leaving is the writer of a client that closes its connection as soon as it has the reply.
type leaving struct {
	*httptest.ResponseRecorder
	leave func()
}

func (l leaving) Write(p []byte) (int, error) {
	defer l.leave()
	return l.ResponseRecorder.Write(p)
}

// TestClientMayLeaveWithItsReply closes a client's connection before the gateway has returned from writing: the request
// was answered, and an equal request is a new one.
func TestClientMayLeaveWithItsReply(t *testing.T) {
	policy := &scripted{}
	s, e := served(t, Config{}, policy, Options{})
	var ids []any
	for range 2 {
		ctx, leave := context.WithCancel(t.Context())
		request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/"+e.id+"/v1/chat/completions",
			strings.NewReader(chatBody))
		request.Header.Set("Authorization", "Bearer "+e.token)
		w := leaving{httptest.NewRecorder(), leave}
		s.ServeHTTP(w, request)
		ids = append(ids, at(t, w.Body.String(), "id"))
	}
	if ids[0] == ids[1] || policy.times() != 2 {
		t.Errorf("got replies %v of %d samples, want one of each request", ids, policy.times())
	}
	if ending := e.End(); !ending.IsWhole() {
		t.Errorf("got the ending %+v, want one without open requests", ending)
	}
}
