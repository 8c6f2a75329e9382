// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/ors"
	"github.com/tinker-operator/tinker-operator/internal/environment/ors/orstest"
	"github.com/tinker-operator/tinker-operator/internal/environment/tooluse"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// pipes is a listener whose connections are pipes, so that a server and its clients can use the clock of a test.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr implements net.Listener.
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.accepted <- far:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// toolServer is an environment server whose tools count their runs.
type toolServer struct {
	orstest.Server
	// breaks has the places at which the connections of calls break. Calls are counted from 1 in the order of their
	// arrival.
	breaks map[int]breakAt

	mu sync.Mutex
	// calls counts requests, and runs are the tools that ran, in their order, each as SESSION TOOL.
	calls int
	runs  []string
}

// breakAt is where a connection breaks: before or after the server has named the call.
type breakAt int

const (
	beforeName breakAt = iota + 1
	afterName
)

// newToolServer returns a server with three tools: look; crash, which raises in the first session; and submit, which
// ends the episode with a reward, or without one if it is called with null.
func newToolServer() *toolServer {
	s := &toolServer{}
	s.Name, s.Splits = "sums", map[string]int64{"train": 10}
	s.Prompt = func(*orstest.Session) string { return "What is the sum of the operands?" }
	s.Tools = map[string]orstest.Tool{
		"look": s.counted("look", func(*orstest.Session, json.RawMessage) (orstest.Output, error) {
			return orstest.Output{Text: "They are 1 and 2."}, nil
		}),
		"crash": s.counted("crash", func(session *orstest.Session, _ json.RawMessage) (orstest.Output, error) {
			if session.ID == "session-1" {
				return orstest.Output{}, errors.New("division by zero")
			}
			return orstest.Output{Text: "It did not crash."}, nil
		}),
		"submit": s.counted("submit", func(_ *orstest.Session, input json.RawMessage) (orstest.Output, error) {
			var arguments struct {
				Answer *string `json:"answer"`
			}
			if err := json.Unmarshal(input, &arguments); err != nil {
				return orstest.Output{}, err
			}
			output := orstest.Output{Text: "Thank you.", Finished: true}
			if arguments.Answer != nil {
				output.Reward = new(1.0)
			}
			return output, nil
		}),
	}
	return s
}

// toolRuns returns the tools that ran.
func (s *toolServer) toolRuns() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.runs)
}

func (s *toolServer) counted(name string, tool orstest.Tool) orstest.Tool {
	return func(session *orstest.Session, input json.RawMessage) (orstest.Output, error) {
		s.mu.Lock()
		s.runs = append(s.runs, session.ID+" "+name)
		s.mu.Unlock()
		return tool(session, input)
	}
}

// ServeHTTP implements http.Handler.
func (s *toolServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/call") {
		s.mu.Lock()
		s.calls++
		at := s.breaks[s.calls]
		s.mu.Unlock()
		if at != 0 {
			w = &breakingWriter{ResponseWriter: w, at: at}
		}
	}
	s.Server.ServeHTTP(w, r)
}

// breakingWriter breaks the connection of a call at its first event, which names the call.
type breakingWriter struct {
	http.ResponseWriter
	at breakAt
}

// Write implements http.ResponseWriter.
func (w *breakingWriter) Write(p []byte) (int, error) {
	if w.at == afterName {
		if _, err := w.ResponseWriter.Write(p); err != nil {
			return 0, err
		}
		if err := http.NewResponseController(w.ResponseWriter).Flush(); err != nil {
			return 0, err
		}
	}
	panic(http.ErrAbortHandler)
}

// faultCount is a Health that counts the faults that it is notified of.
type faultCount struct {
	mu     sync.Mutex
	faults int
}

func (*faultCount) Admit(ctx context.Context) error { return ctx.Err() }
func (*faultCount) Begun()                          {}
func (f *faultCount) Ended(_ bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var fault *environment.Fault
	if errors.As(err, &fault) {
		f.faults++
	}
}

// playOnServer plays one member on a server with a policy of these replies, and returns it with the group's reason and
// the number of faults.
func playOnServer(t *testing.T, server *toolServer, options ors.Options, replies []string,
	change func(*contract.Environment)) (rl.Member, string, int) {
	t.Helper()
	listener := &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
	transport := &http.Transport{DialContext: listener.dial}
	serving := &http.Server{Handler: server}
	go serving.Serve(listener)
	defer func() {
		transport.CloseIdleConnections()
		serving.Close()
	}()
	options.BaseURL, options.HTTP = "http://sums.test", &http.Client{Transport: transport}
	backend, err := ors.New(options)
	if err != nil {
		t.Fatal(err)
	}
	env, err := tooluse.New(backend, tooluse.Options{MaxParseErrors: 1})
	if err != nil {
		t.Fatal(err)
	}
	tokens, health := qwen3(t), &faultCount{}
	g := singleMember(change)
	g.Split, g.Task, g.Transcript = "train", 3, true
	p := &Player{
		Environment: env, Renderer: rendererOf(t, "qwen3", tokens), Policy: &script{tokens: tokens, replies: replies},
		Gate: open{}, Health: health, Progress: &Progress{},
	}
	group, err := p.Play(t.Context(), g)
	if err != nil {
		t.Fatalf("Play: %v", err)
	}
	if err := group.Validate(); err != nil {
		t.Errorf("the group is not valid: %v", err)
	}
	if open := server.Sessions(); open != 0 {
		t.Errorf("%d sessions are left open", open)
	}
	return group.Members[0], group.Reason, health.faults
}
