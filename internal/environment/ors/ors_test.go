// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package ors

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/ors/orstest"
	"github.com/tinker-operator/tinker-operator/internal/environment/tooluse"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// fastRetry are the pauses of tests.
var fastRetry = wait.Backoff{First: time.Millisecond, Longest: 10 * time.Millisecond}

// newServer returns a server with an environment of sums: submit ends an episode with a reward, and look returns the
// operands.
func newServer() *orstest.Server {
	return &orstest.Server{
		Name: "sums", Splits: map[string]int64{"train": 90, "test": 10},
		Prompt: func(s *orstest.Session) string { return "What is the sum of the operands?" },
		Tools: map[string]orstest.Tool{
			"look": func(s *orstest.Session, _ json.RawMessage) (orstest.Output, error) {
				return orstest.Output{Text: "  the operands are 1 and 2"}, nil
			},
			"submit": func(_ *orstest.Session, input json.RawMessage) (orstest.Output, error) {
				reward := 0.0
				if strings.Contains(string(input), `"3"`) {
					reward = 1
				}
				return orstest.Output{Text: "Thank you.", Reward: &reward, Finished: true}, nil
			},
			"crash": func(*orstest.Session, json.RawMessage) (orstest.Output, error) {
				return orstest.Output{}, errors.New("division by zero")
			},
		},
	}
}

// connect serves the handler and returns a backend for it that does not wait long.
func connect(t *testing.T, handler http.Handler, options Options) *Backend {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	options.BaseURL = server.URL
	b, err := New(options)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	b.pace = pace{ping: time.Hour, idle: time.Minute, retry: fastRetry}
	return b
}

// begin opens a session and asks for its messages and tools.
func begin(t *testing.T, b *Backend) (tooluse.Session, []chat.Message, []chat.Tool) {
	t.Helper()
	session, err := b.Open(t.Context(), environment.Task{Split: "train", Index: 7})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { session.Close(context.Background()) })
	messages, err := session.Messages(t.Context())
	if err != nil {
		t.Fatalf("Messages: %v", err)
	}
	tools, err := session.Tools(t.Context())
	if err != nil {
		t.Fatalf("Tools: %v", err)
	}
	return session, messages, tools
}

func TestSplits(t *testing.T) {
	got, err := connect(t, newServer(), Options{}).Splits(t.Context())
	want := []environment.Split{{Name: "test", Tasks: 10}, {Name: "train", Tasks: 90}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("Splits: %v (-want +got):\n%s", err, diff)
	}
}

func TestSession(t *testing.T) {
	server := newServer()
	session, messages, tools := begin(t, connect(t, server, Options{Environment: "Sums"}))
	if diff := cmp.Diff([]chat.Message{{Role: "user", Content: "What is the sum of the operands?"}},
		messages); diff != "" {
		t.Errorf("Messages (-want +got):\n%s", diff)
	}
	if len(tools) != 3 {
		t.Errorf("Tools = %v, want three", tools)
	}
	calls := []struct {
		name, arguments string
		want            tooluse.Result
	}{
		{name: "look", want: tooluse.Result{Text: "  the operands are 1 and 2"}},
		{name: "lok", arguments: "{}", want: tooluse.Result{Text: `Error: "lok" is not a valid tool`, Invalid: true}},
		{name: "submit", arguments: `{"answer":"3"}`, want: tooluse.Result{Text: "Thank you.",
			Rewards: []environment.Reward{{Value: 1}}, Done: true}},
	}
	for _, call := range calls {
		got, err := session.Call(t.Context(), chat.ToolCall{Name: call.name, Arguments: call.arguments})
		if err != nil {
			t.Fatalf("Call(%s): %v", call.name, err)
		}
		call.want.Metrics = map[string]float64{MetricCut: 0, MetricReconnects: 0}
		if diff := cmp.Diff(call.want, got); diff != "" {
			t.Errorf("Call(%s) (-want +got):\n%s", call.name, diff)
		}
	}
	session.Close(t.Context())
	if server.Sessions() != 0 {
		t.Errorf("%d sessions are left open", server.Sessions())
	}
}

func TestArgumentsThatAreNotAnObjectDoNotReachTheServer(t *testing.T) {
	server := newServer()
	session, _, _ := begin(t, connect(t, server, Options{}))
	for _, arguments := range []string{"[1]", "3", "null", "{"} {
		got, err := session.Call(t.Context(), chat.ToolCall{Name: "submit", Arguments: arguments})
		if err != nil || !got.Invalid {
			t.Errorf("Call with arguments %s = %+v, %v, want an invalid call", arguments, got, err)
		}
	}
	for _, line := range server.Log() {
		if strings.HasSuffix(line, "/call") {
			t.Errorf("the server was called")
		}
	}
}

func TestAnswerWithoutATool(t *testing.T) {
	server := newServer()
	session, _, _ := begin(t, connect(t, server, Options{}))
	got, err := session.Answer(t.Context(), environment.Reply{Message: chat.Message{Content: "3"}})
	if diff := cmp.Diff(tooluse.Outcome{Text: reminder}, got); err != nil || diff != "" {
		t.Errorf("Answer: %v (-want +got):\n%s", err, diff)
	}
}

func TestAnswerGoesToTheTerminalTool(t *testing.T) {
	server := newServer()
	server.Terminal, server.TerminalArgument = "submit", "answer"
	session, _, tools := begin(t, connect(t, server, Options{}))
	if len(tools) != 2 {
		t.Errorf("the policy sees %d tools, want two: the tool for answers is hidden", len(tools))
	}
	got, err := session.Answer(t.Context(), environment.Reply{Message: chat.Message{Content: "3"}})
	if diff := cmp.Diff([]environment.Reward{{Value: 1}}, got.Rewards); err != nil || diff != "" || got.Text != "" {
		t.Errorf("Answer = %+v, %v; rewards (-want +got):\n%s", got, err, diff)
	}
}

func TestAnswerGoesToTheConfiguredTool(t *testing.T) {
	session, _, tools := begin(t, connect(t, newServer(),
		Options{AnswerTool: &settings.AnswerTool{Name: "submit", Argument: "answer"}}))
	if len(tools) != 2 {
		t.Errorf("the policy sees %d tools, want two: the tool for answers is hidden", len(tools))
	}
	got, err := session.Answer(t.Context(), environment.Reply{Message: chat.Message{Content: "3"}})
	if diff := cmp.Diff([]environment.Reward{{Value: 1}}, got.Rewards); err != nil || diff != "" || got.Text != "" {
		t.Errorf("Answer = %+v, %v; rewards (-want +got):\n%s", got, err, diff)
	}
}

func TestConfiguredAnswerToolAnswersUntilItEndsTheEpisode(t *testing.T) {
	server := newServer()
	server.Tools["say"] = func(_ *orstest.Session, input json.RawMessage) (orstest.Output, error) {
		reward := 0.5
		return orstest.Output{Text: "You said " + string(input), Reward: &reward, Finished: strings.Contains(string(input),
			"bye")}, nil
	}
	session, _, _ := begin(t, connect(t, server, Options{AnswerTool: &settings.AnswerTool{Name: "say", Argument: "text"}}))
	for reply, want := range map[string]string{"hello": `You said {"text":"hello"}`, "bye": ""} {
		got, err := session.Answer(t.Context(), environment.Reply{Message: chat.Message{Content: reply}})
		if err != nil || got.Text != want || len(got.Rewards) != 1 {
			t.Errorf("Answer(%s) = %+v, %v, want the text %q and a reward", reply, got, err, want)
		}
	}
}

func TestConfiguredAnswerToolThatDoesNotExist(t *testing.T) {
	b := connect(t, newServer(), Options{AnswerTool: &settings.AnswerTool{Name: "sumbit"}})
	session, err := b.Open(t.Context(), environment.Task{Split: "train"})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	defer session.Close(t.Context())
	_, err = session.Tools(t.Context())
	var fault *environment.Fault
	if !errors.As(err, &fault) || !fault.Permanent || !strings.Contains(err.Error(), `ors.answerTool.name is "sumbit"`) ||
		!strings.Contains(err.Error(), "submit") {
		t.Errorf("Tools: %v, want a permanent fault with the field and the tools that exist", err)
	}
}

// TestFaults breaks the server in a different way in each case. Every case ends in a fault of the environment that is
// not permanent, so that it leads to a new session.
func TestFaults(t *testing.T) {
	cases := map[string]struct {
		before func(*orstest.Server) func(w http.ResponseWriter, r *http.Request) bool
		tool   string
		want   string
	}{
		"the tool raises": {tool: "crash", want: "division by zero"},
		"the server has forgotten the session": {tool: "look", want: "answers 404 Not Found",
			before: func(s *orstest.Server) func(http.ResponseWriter, *http.Request) bool {
				return func(_ http.ResponseWriter, r *http.Request) bool {
					if strings.HasSuffix(r.URL.Path, "/call") {
						s.Forget()
					}
					return false
				}
			}},
		"the reply is endless": {tool: "look", want: "longer than", before: func(*orstest.Server) func(http.ResponseWriter,
			*http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if strings.HasSuffix(r.URL.Path, "/call") {
					flood(w, r)
				}
				return strings.HasSuffix(r.URL.Path, "/call")
			}
		}},
		"the connection breaks before the task is known": {tool: "look", want: "EOF",
			before: func(*orstest.Server) func(http.ResponseWriter, *http.Request) bool {
				return func(w http.ResponseWriter, r *http.Request) bool {
					if strings.HasSuffix(r.URL.Path, "/call") {
						panic(http.ErrAbortHandler)
					}
					return false
				}
			}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newServer()
			session, _, _ := begin(t, connect(t, server, Options{}))
			if tc.before != nil {
				server.Before = tc.before(server)
			}
			_, err := session.Call(t.Context(), chat.ToolCall{Name: tc.tool, Arguments: "{}"})
			var fault *environment.Fault
			if !errors.As(err, &fault) || fault.Permanent || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Call: %v, want a fault that is not permanent and contains %q", err, tc.want)
			}
			if got := countCalls(server); got > 1 {
				t.Errorf("the server was called %d times, though it may have run the tool", got)
			}
		})
	}
}

// flood sends endless data.
func flood(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	line := []byte("event: chunk\ndata: " + strings.Repeat("x", 1<<20) + "\n\n")
	for r.Context().Err() == nil {
		if _, err := w.Write(line); err != nil {
			return
		}
	}
}

func countCalls(server *orstest.Server) int {
	calls := 0
	for _, line := range server.Log() {
		if strings.HasSuffix(line, "/call") {
			calls++
		}
	}
	return calls
}

// TestReconnect breaks the stream of a call three times after the server has named its task.
func TestReconnect(t *testing.T) {
	server := newServer()
	release := make(chan struct{})
	var runs atomic.Int64
	server.Tools["slow"] = func(*orstest.Session, json.RawMessage) (orstest.Output, error) {
		runs.Add(1)
		<-release
		return orstest.Output{Text: "done"}, nil
	}
	var breaks atomic.Int64
	session, _, _ := begin(t, connect(t, breaking(server, &breaks, release), Options{}))
	got, err := session.Call(t.Context(), chat.ToolCall{Name: "slow"})
	if err != nil || got.Text != "done" || runs.Load() != 1 {
		t.Errorf("Call = %+v, %v after %d runs of the tool, want one", got, err, runs.Load())
	}
	if got.Metrics[MetricReconnects] != 3 {
		t.Errorf("%s = %v, want 3", MetricReconnects, got.Metrics[MetricReconnects])
	}
}

// breaking serves calls with a body that breaks off after the first event, three times.
func breaking(server http.Handler, breaks *atomic.Int64, release chan struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/call") {
			server.ServeHTTP(w, r)
			return
		}
		switch n := breaks.Add(1); {
		case n <= 3:
			server.ServeHTTP(&abortAfterTask{ResponseWriter: w}, r)
		default:
			close(release)
			server.ServeHTTP(w, r)
		}
	})
}

// abortAfterTask aborts the response after its first event.
type abortAfterTask struct{ http.ResponseWriter }

// Write implements http.ResponseWriter.
func (a *abortAfterTask) Write(p []byte) (int, error) {
	n, err := a.ResponseWriter.Write(p)
	if strings.Contains(string(p), "task_id") {
		http.NewResponseController(a.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}

func TestCapacityIsAwaited(t *testing.T) {
	server := newServer()
	server.Capacity = 1
	b := connect(t, server, Options{})
	first, _, _ := begin(t, b)
	time.AfterFunc(50*time.Millisecond, func() { first.Close(context.Background()) })
	begin(t, b)
}

func TestLostReplyToCreate(t *testing.T) {
	server := newServer()
	var lost atomic.Bool
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/create" && lost.CompareAndSwap(false, true) {
			server.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		server.ServeHTTP(w, r)
	})
	begin(t, connect(t, handler, Options{}))
	if server.Sessions() != 1 {
		t.Errorf("the server has %d sessions, want one", server.Sessions())
	}
}

func TestUnknownTaskIsPermanent(t *testing.T) {
	server := newServer()
	_, err := connect(t, server, Options{}).Open(t.Context(), environment.Task{Split: "train", Index: 90})
	var fault *environment.Fault
	if !errors.As(err, &fault) || !fault.Permanent {
		t.Errorf("Open: %v, want a permanent fault", err)
	}
	if server.Sessions() != 0 {
		t.Errorf("%d sessions are left open", server.Sessions())
	}
}

func TestUnknownEnvironmentNamesThoseOfTheServer(t *testing.T) {
	_, err := connect(t, newServer(), Options{Environment: "products"}).Splits(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the server has: sums") {
		t.Errorf("Splits: %v, want the server's environments", err)
	}
}

func TestContextEndsACall(t *testing.T) {
	server, release := newServer(), make(chan struct{})
	server.Tools["slow"] = func(*orstest.Session, json.RawMessage) (orstest.Output, error) {
		<-release
		return orstest.Output{}, nil
	}
	session, _, _ := begin(t, connect(t, server, Options{}))
	defer close(release)
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := session.Call(ctx, chat.ToolCall{Name: "slow"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Call: %v, want the error of the context", err)
	}
}

func TestOutputsAreCut(t *testing.T) {
	server := newServer()
	server.Tools["long"] = func(*orstest.Session, json.RawMessage) (orstest.Output, error) {
		return orstest.Output{Text: strings.Repeat("ä", 5<<20)}, nil
	}
	session, _, _ := begin(t, connect(t, server, Options{MaxText: 101}))
	got, err := session.Call(t.Context(), chat.ToolCall{Name: "long"})
	want := strings.Repeat("ä", 50) + "\n[The output was cut: it has 10485760 bytes.]"
	if err != nil || got.Text != want || got.Metrics[MetricCut] != 1 {
		t.Errorf("Call = %.200q, %v, %v", got.Text, got.Metrics, err)
	}
}

func TestPings(t *testing.T) {
	server, pinged := newServer(), make(chan struct{}, 1)
	server.Before = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && r.URL.Path == "/ping" {
			select {
			case pinged <- struct{}{}:
			default:
			}
		}
		return false
	}
	b := connect(t, server, Options{})
	b.pace.ping = 10 * time.Millisecond
	begin(t, b)
	select {
	case <-pinged:
	case <-time.After(10 * time.Minute):
		t.Fatal("the session was not pinged")
	}
}

func TestSecrets(t *testing.T) {
	cases := map[string]struct {
		delivery     settings.SecretDelivery
		refuseBody   bool
		header, body bool
	}{
		"header":                            {delivery: settings.DeliverHeader, header: true},
		"body":                              {delivery: settings.DeliverBody, body: true},
		"both":                              {delivery: settings.DeliverBoth, header: true, body: true},
		"both, and the body is not allowed": {delivery: settings.DeliverBoth, refuseBody: true, header: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var header string
			var body map[string]any
			server := newServer()
			server.Before = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/create" {
					return false
				}
				header, body = r.Header.Get("X-Secrets"), map[string]any{}
				if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
					t.Errorf("decoding create: %v", err)
				}
				if tc.refuseBody && body["secrets"] != nil {
					w.WriteHeader(http.StatusUnprocessableEntity)
				} else {
					w.Write([]byte(`{"sid":"s"}`))
				}
				return true
			}
			b := connect(t, server, Options{Delivery: tc.delivery,
				Secrets: []Secret{{Name: "KEY", Value: "v", AllowedHosts: []string{"h"}}}})
			session, err := b.Open(t.Context(), environment.Task{Split: "train"})
			if err != nil {
				t.Fatalf("Open: %v", err)
			}
			session.Close(t.Context())
			want := map[bool]string{true: base64.StdEncoding.EncodeToString(
				[]byte(`{"KEY":{"value":"v","allowed_domains":["h"]}}`))}[tc.header]
			if header != want || (body["secrets"] != nil) != tc.body {
				t.Errorf("header %q, body %v, want header %v, body %v", header, body, tc.header, tc.body)
			}
		})
	}
}

func TestRedirectToAnotherHostIsNotFollowed(t *testing.T) {
	var reached atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer other.Close()
	b := connect(t, http.RedirectHandler(other.URL, http.StatusPermanentRedirect), Options{APIKey: "key"})
	if _, err := b.Splits(t.Context()); err == nil || reached.Load() {
		t.Errorf("Splits: %v, and the other host was reached: %v", err, reached.Load())
	}
}
