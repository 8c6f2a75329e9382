// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build conformance

package environments

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/ors"
	"github.com/tinker-operator/tinker-operator/internal/environment/tooluse"
)

// packages are the Python packages whose servers are tested: the requirements file and the module of each, and how its
// server reads secrets.
var packages = map[string]struct {
	module   string
	delivery settings.SecretDelivery
}{
	"ors-sdk":    {module: "ors", delivery: settings.DeliverBody},
	"openreward": {module: "openreward.environments", delivery: settings.DeliverHeader},
}

func TestServersOfPythonPackages(t *testing.T) {
	for name, p := range packages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := serve(t, name, p.module)
			t.Run("splits", func(t *testing.T) { testSplits(t, address) })
			t.Run("episode", func(t *testing.T) { testEpisode(t, address) })
			t.Run("calls", func(t *testing.T) { testCalls(t, address) })
			t.Run("a tool that raises", func(t *testing.T) { testRaise(t, address) })
			t.Run("a connection that breaks", func(t *testing.T) { testReconnect(t, address) })
			t.Run("a session that was deleted", func(t *testing.T) { testDeleted(t, address) })
			t.Run("secrets", func(t *testing.T) {
				testSecrets(t, address, p.delivery)
				testSecrets(t, address, settings.DeliverBoth)
			})
		})
	}
}

// serve starts server.py with a package and returns its URL. The server ends with the test.
func serve(t *testing.T, requirements, module string) string {
	t.Helper()
	venv := exec.CommandContext(t.Context(), "../conformance/venv", requirements)
	path, err := venv.Output()
	if err != nil {
		t.Fatalf("making the environment of requirements/%s.txt: %v", requirements, err)
	}
	server := exec.CommandContext(context.WithoutCancel(t.Context()),
		filepath.Join(strings.TrimSpace(string(path)), "bin", "python"), "server.py", module)
	var log strings.Builder
	server.Stderr = &log
	output, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatalf("starting the server: %v", err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		if t.Failed() {
			t.Logf("the server's log:\n%s", log.String())
		}
	})
	lines := bufio.NewReader(output)
	port, err := lines.ReadString('\n')
	if err != nil {
		t.Fatalf("the server ended before it served: %v", err)
	}
	go io.Copy(io.Discard, lines)
	return "http://127.0.0.1:" + strings.TrimSpace(port)
}

func backend(t *testing.T, options ors.Options) *ors.Backend {
	t.Helper()
	b, err := ors.New(options)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return b
}

// open opens a session of the first task of the split test, 0 + 0.
func open(t *testing.T, options ors.Options) tooluse.Session {
	t.Helper()
	session, err := backend(t, options).Open(t.Context(), environment.Task{Split: "test"})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { session.Close(context.Background()) })
	return session
}

func call(t *testing.T, session tooluse.Session, name, arguments string) tooluse.Result {
	t.Helper()
	result, err := session.Call(t.Context(), chat.ToolCall{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("Call(%s): %v", name, err)
	}
	return result
}

func testSplits(t *testing.T, address string) {
	want := []environment.Split{{Name: "test", Tasks: 5}, {Name: "train", Tasks: 20}}
	got, err := backend(t, ors.Options{BaseURL: address}).Splits(t.Context())
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("Splits: %v (-want +got):\n%s", err, diff)
	}
	if _, err := backend(t, ors.Options{BaseURL: address, Environment: "products"}).Splits(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "sums") {
		t.Errorf("Splits of an unknown environment: %v, want the server's environments", err)
	}
}

// testEpisode runs an episode of tool use: a call with wrong arguments, then the answer.
func testEpisode(t *testing.T, address string) {
	env, err := tooluse.New(backend(t, ors.Options{BaseURL: address}), tooluse.Options{SystemPrompt: "$(tools)",
		MaxParseErrors: 2})
	if err != nil {
		t.Fatal(err)
	}
	episode, err := env.Start(t.Context(), environment.Task{Split: "test", Index: 1})
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	defer episode.Close(t.Context())
	prompts, err := episode.Prompts(t.Context())
	if err != nil {
		t.Fatalf("Prompts: %v", err)
	}
	if got := prompts[0].Messages; len(got) != 2 || !strings.Contains(got[0].Content, `"name":"submit"`) ||
		got[1].Content != "What is 1 + 4?" {
		t.Errorf("the first messages are %+v", got)
	}
	turn := step(t, episode, `{"number": 5}`)
	if last := turn.Prompts[0].Messages; !strings.HasPrefix(last[len(last)-1].Content, "Error: ") {
		t.Errorf("the answer to wrong arguments is %+v", last[len(last)-1])
	}
	turn = step(t, episode, `{"answer": "5"}`)
	if diff := cmp.Diff([]environment.Reward{{Value: 1}}, turn.Rewards); diff != "" || !turn.Done {
		t.Errorf("the last turn is %+v; rewards (-want +got):\n%s", turn, diff)
	}
}

// step replies with a call of submit.
func step(t *testing.T, episode environment.Episode, arguments string) environment.Turn {
	t.Helper()
	reply := environment.Reply{Message: chat.Message{Role: "assistant",
		Calls: []chat.ToolCall{{Name: "submit", Arguments: arguments}}}}
	turn, err := episode.Step(t.Context(), []environment.Reply{reply})
	if err != nil {
		t.Fatalf("Step: %v", err)
	}
	return turn
}

func testCalls(t *testing.T, address string) {
	session := open(t, ors.Options{BaseURL: address, Environment: "SUMS"})
	if got := call(t, session, "sumbit", "{}"); !got.Invalid || !strings.Contains(got.Text, "not a valid tool") {
		t.Errorf("a call of an unknown tool: %+v", got)
	}
	numbers := make([]string, 5000)
	for i := range numbers {
		numbers[i] = fmt.Sprint(i)
	}
	if diff := cmp.Diff(strings.Join(numbers, " "), call(t, session, "long", "{}").Text); diff != "" {
		t.Errorf("a result of several events (-want +got):\n%s", diff)
	}
	if got := call(t, session, "slow", ""); len(got.Rewards) != 0 || got.Done {
		t.Errorf("a result without a reward is %+v", got)
	}
}

func testRaise(t *testing.T, address string) {
	session := open(t, ors.Options{BaseURL: address})
	_, err := session.Call(t.Context(), chat.ToolCall{Name: "crash"})
	var fault *environment.Fault
	if !errors.As(err, &fault) || fault.Permanent || !strings.Contains(err.Error(), "the tool is broken") {
		t.Errorf("Call: %v, want a fault that is not permanent and quotes the tool", err)
	}
}

// testReconnect calls a tool through a proxy that breaks the first two streams after their first event.
func testReconnect(t *testing.T, address string) {
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	var breaks atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1
	// Tests run in parallel, and each test server that ends closes connections of http.DefaultTransport.
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	proxy.Transport = transport
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Otherwise the server closes the request's body with the first byte of the response, and a proxy that has not
		// seen the end of the body yet breaks the stream.
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		if strings.HasSuffix(r.URL.Path, "/call") && breaks.Add(1) <= 2 {
			w = &aborting{ResponseWriter: w}
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	session := open(t, ors.Options{BaseURL: server.URL})
	got := call(t, session, "slow", "{}")
	if got.Text != "call 1" || got.Metrics[ors.MetricReconnects] != 2 {
		t.Errorf("Call = %+v, want the first call's result after two reconnects", got)
	}
	if got := call(t, session, "slow", "{}"); got.Text != "call 2" {
		t.Errorf("the next call: %q: the tool ran more than once before", got.Text)
	}
}

// aborting aborts a response once it has sent the event with the ID of the task.
type aborting struct {
	http.ResponseWriter
	sent []byte
}

// Write implements http.ResponseWriter.
func (a *aborting) Write(p []byte) (int, error) {
	n, err := a.ResponseWriter.Write(p)
	a.sent = append(a.sent, p[:n]...)
	if _, event, found := strings.Cut(strings.ReplaceAll(string(a.sent), "\r", ""), "task_id"); found &&
		strings.Contains(event, "\n\n") {
		http.NewResponseController(a.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}

// Unwrap lets a http.ResponseController find the writer.
func (a *aborting) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func testDeleted(t *testing.T, address string) {
	session := open(t, ors.Options{BaseURL: address})
	session.Close(t.Context())
	_, err := session.Call(t.Context(), chat.ToolCall{Name: "slow"})
	var fault *environment.Fault
	if !errors.As(err, &fault) || fault.Permanent {
		t.Errorf("Call: %v, want a fault that is not permanent", err)
	}
}

func testSecrets(t *testing.T, address string, delivery settings.SecretDelivery) {
	session := open(t, ors.Options{BaseURL: address, Delivery: delivery,
		Secrets: []ors.Secret{{Name: "KEY", Value: "word"}}})
	if got := call(t, session, "secret", ""); got.Text != "word" {
		t.Errorf("the environment's secret is %q with delivery %s", got.Text, delivery)
	}
}

// TestConversationAndAnswer tests two features that only the newer package has: tasks that begin with a conversation,
// and a tool that takes a reply without a call.
func TestConversationAndAnswer(t *testing.T) {
	address := serve(t, "openreward", packages["openreward"].module)
	session := open(t, ors.Options{BaseURL: address, Environment: "talk"})
	messages, err := session.Messages(t.Context())
	want := []chat.Message{
		{Role: "system", Content: "Be brief."}, {Role: "user", Content: "Say hello."},
		{Role: "assistant", Content: "Hello."}, {Role: "user", Content: "Again."},
	}
	if diff := cmp.Diff(want, messages); err != nil || diff != "" {
		t.Errorf("Messages: %v (-want +got):\n%s", err, diff)
	}
	tools, err := session.Tools(t.Context())
	if err != nil || len(tools) != 0 {
		t.Errorf("Tools = %v, %v, want none", tools, err)
	}
	outcome, err := session.Answer(t.Context(), environment.Reply{Message: chat.Message{Content: "Hello."}})
	if diff := cmp.Diff([]environment.Reward{{Value: 1}}, outcome.Rewards); err != nil || diff != "" {
		t.Errorf("Answer: %v; rewards (-want +got):\n%s", err, diff)
	}
}

// TestToolset tests that a toolset of the newer package is added to the tools of the environment, and can be called.
func TestToolset(t *testing.T) {
	address := serve(t, "openreward", packages["openreward"].module)
	session := open(t, ors.Options{BaseURL: address, Environment: "tooled", Toolset: "cli"})
	if _, err := session.Messages(t.Context()); err != nil {
		t.Fatalf("Messages: %v", err)
	}
	tools, err := session.Tools(t.Context())
	if err != nil {
		t.Fatalf("Tools: %v", err)
	}
	for _, name := range []string{"bash", "done"} {
		if !slices.ContainsFunc(tools, func(tool chat.Tool) bool { return tool.Name == name }) {
			t.Errorf("Tools = %+v, want %s among them", tools, name)
		}
	}
	if got := call(t, session, "todo_write", `{"todos": []}`); got.Invalid || got.Done {
		t.Errorf("a call of the toolset: %+v", got)
	}
	if got := call(t, session, "done", ""); !got.Done {
		t.Errorf("a call of the environment's own tool: %+v", got)
	}
	refused := map[string]ors.Options{
		"unknown toolset 'clj'": {BaseURL: address, Environment: "tooled", Toolset: "clj"},
		"toolset_name":          {BaseURL: serve(t, "ors-sdk", packages["ors-sdk"].module), Toolset: "cli"},
	}
	for words, options := range refused {
		_, err := backend(t, options).Open(t.Context(), environment.Task{Split: "test"})
		var fault *environment.Fault
		if !errors.As(err, &fault) || !fault.Permanent || !strings.Contains(err.Error(), words) ||
			!strings.Contains(err.Error(), "ors.toolset is") {
			t.Errorf("Open: %v, want a permanent fault that names the field and quotes %q", err, words)
		}
	}
}
