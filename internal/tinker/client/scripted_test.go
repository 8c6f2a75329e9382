// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

const testKey = "tml-secret-of-the-test"

var errLost = errors.New("connection reset")

// scriptedReply is the scripted server's reaction to one request: the server holds the request, then drops it or
// replies.
type scriptedReply struct {
	hold   time.Duration
	lost   bool
	status int
	header map[string]string
	body   string
}

// recordedRequest is a request that the server received, and when.
type recordedRequest struct {
	at     time.Duration
	method string
	path   string
	query  string
	header http.Header
	body   string
}

// scriptedServer is a server in process. Each path has a queue of replies, and the last one is repeated; the polls of
// one future have their own queue under retrieve_future#ID. It is an http.RoundTripper, so that a test runs in fake
// time.
type scriptedServer struct {
	mu      sync.Mutex
	started time.Time
	replies map[string][]scriptedReply
	seen    []recordedRequest
}

// newScriptedServer returns a server that replies to client/config with an empty object by default.
func newScriptedServer(replies map[string][]scriptedReply) *scriptedServer {
	all := map[string][]scriptedReply{"client/config": {ok("{}")}}
	maps.Copy(all, replies)
	return &scriptedServer{started: time.Now(), replies: all}
}

func ok(body string) scriptedReply { return scriptedReply{status: http.StatusOK, body: body} }

func protobufReply(t *testing.T, body []byte, err error) scriptedReply {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return scriptedReply{status: http.StatusOK, header: map[string]string{"Content-Type": tinker.ContentProtobuf},
		body: string(body)}
}

func status(code int) scriptedReply {
	return scriptedReply{status: code, body: fmt.Sprintf(`{"detail":"reply %d"}`, code)}
}

// RoundTrip records the request and returns the next reply of its path.
func (s *scriptedServer) RoundTrip(r *http.Request) (*http.Response, error) {
	body := []byte{}
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	next, err := s.next(r, string(body))
	if err != nil {
		return nil, err
	}
	if err := wait.Sleep(r.Context(), next.hold); err != nil {
		return nil, r.Context().Err()
	}
	if next.lost {
		return nil, errLost
	}
	header := http.Header{"Content-Type": {tinker.ContentJSON}}
	for name, value := range next.header {
		header.Set(name, value)
	}
	return &http.Response{
		StatusCode: next.status, Header: header, Body: io.NopCloser(strings.NewReader(next.body)), Request: r,
		Proto: "HTTP/1.1",
	}, nil
}

// requestID returns the id of a poll's future.
func requestID(body string) string {
	var poll tinker.RetrieveRequest
	if json.Unmarshal([]byte(body), &poll) != nil {
		return ""
	}
	return poll.RequestID
}

func (s *scriptedServer) next(r *http.Request, body string) (scriptedReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, apiPrefix)
	s.seen = append(s.seen, recordedRequest{time.Since(s.started), r.Method, path, r.URL.RawQuery, r.Header.Clone(), body})
	key := path
	if own := path + "#" + requestID(body); s.replies[own] != nil {
		key = own
	}
	queue := s.replies[key]
	if len(queue) == 0 {
		return status(http.StatusNotFound), nil
	}
	if len(queue) > 1 {
		s.replies[key] = queue[1:]
	}
	return queue[0], nil
}

// requests returns the requests of a path so far.
func (s *scriptedServer) requests(path string) []recordedRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []recordedRequest
	for _, e := range s.seen {
		if e.path == path {
			out = append(out, e)
		}
	}
	return out
}

// bodies returns the bodies of a path's requests.
func (s *scriptedServer) bodies(path string) []string {
	var out []string
	for _, e := range s.requests(path) {
		out = append(out, e.body)
	}
	return out
}

// times returns when a path's requests arrived.
func (s *scriptedServer) times(path string) []time.Duration {
	var out []time.Duration
	for _, e := range s.requests(path) {
		out = append(out, e.at)
	}
	return out
}

// testClient is a client of a scripted server, with its events and log.
type testClient struct {
	*Client
	*scriptedServer
	mu     sync.Mutex
	events []Event
	logged *bytes.Buffer
}

func newTestClient(t *testing.T, replies map[string][]scriptedReply) *testClient {
	t.Helper()
	w := &testClient{scriptedServer: newScriptedServer(replies), logged: &bytes.Buffer{}}
	var err error
	w.Client, err = New(Config{
		BaseURL: "http://server.test/", APIKey: testKey + "\n", UserAgent: "test/1",
		HTTP:    &http.Client{Transport: w.scriptedServer},
		Logger:  slog.New(slog.NewJSONHandler(w.logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Observe: w.record, Spread: func() float64 { return 0 },
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *testClient) record(e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

// eventLines returns the events so far, one line each.
func (w *testClient) eventLines() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, e := range w.events {
		line := fmt.Sprintf("%s %s", e.Op, e.Category)
		if e.QueueState != "" {
			line += " " + string(e.QueueState)
		}
		if e.Over {
			line += " over"
		}
		out = append(out, line)
	}
	return out
}

// bubble runs a test in a day of fake time, and fails it if a goroutine remains.
func bubble(t *testing.T, test func(t *testing.T, ctx context.Context)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		test(t, ctx)
	})
}

// seqIDs returns the seq_id of JSON bodies.
func seqIDs(t *testing.T, bodies []string) []int64 {
	t.Helper()
	var out []int64
	for _, body := range bodies {
		var parsed struct {
			SeqID int64 `json:"seq_id"`
		}
		if err := json.Unmarshal([]byte(body), &parsed); err != nil {
			t.Fatal(err)
		}
		out = append(out, parsed.SeqID)
	}
	return out
}

// createModel creates the model "s:train:0", and adds the replies for it.
func (w *testClient) createModel(t *testing.T, ctx context.Context) *Model {
	t.Helper()
	w.replies["create_model"] = []scriptedReply{ok(`{"request_id":"new"}`)}
	w.replies["retrieve_future#new"] = []scriptedReply{ok(`{"model_id":"s:train:0","type":"create_model"}`)}
	model, err := w.CreateModel(ctx, tinker.CreateModelRequest{Session: "s", BaseModel: "base",
		Lora: tinker.DefaultLora()})
	if err != nil {
		t.Fatal(err)
	}
	return model
}
