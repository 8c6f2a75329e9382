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
)

const testKey = "tml-secret-of-the-test"

var errLost = errors.New("connection reset")

// answer is what the scripted server does with one request: hold it, then lose it or answer.
type answer struct {
	hold   time.Duration
	lost   bool
	status int
	header map[string]string
	body   string
}

// exchanged is a request as the server saw it, and when.
type exchanged struct {
	at     time.Duration
	method string
	path   string
	query  string
	header http.Header
	body   string
}

// script is a server in process: each path has a queue of answers, of which the last is repeated; polls of
// one promise have their own under retrieve_future#ID. It is an http.RoundTripper, so that all of a test runs in a bubble of fake time.
type script struct {
	mu      sync.Mutex
	started time.Time
	answers map[string][]answer
	seen    []exchanged
}

// newScript answers client/config with an empty object unless told otherwise.
func newScript(answers map[string][]answer) *script {
	all := map[string][]answer{"client/config": {ok("{}")}}
	maps.Copy(all, answers)
	return &script{started: time.Now(), answers: all}
}

func ok(body string) answer { return answer{status: http.StatusOK, body: body} }

func protobufAnswer(t *testing.T, body []byte, err error) answer {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return answer{status: http.StatusOK, header: map[string]string{"Content-Type": tinker.ContentProtobuf}, body: string(body)}
}

func status(code int) answer {
	return answer{status: code, body: fmt.Sprintf(`{"detail":"answer %d"}`, code)}
}

// RoundTrip records the request and plays the next answer of its path.
func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
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
	if err := sleep(r.Context(), next.hold); err != nil {
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
		StatusCode: next.status, Header: header, Body: io.NopCloser(strings.NewReader(next.body)), Request: r, Proto: "HTTP/1.1",
	}, nil
}

// requestID finds the promise that a poll is about.
func requestID(body string) string {
	var poll tinker.RetrieveRequest
	if json.Unmarshal([]byte(body), &poll) != nil {
		return ""
	}
	return poll.RequestID
}

func (s *script) next(r *http.Request, body string) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, apiPrefix)
	s.seen = append(s.seen, exchanged{time.Since(s.started), r.Method, path, r.URL.RawQuery, r.Header.Clone(), body})
	key := path
	if own := path + "#" + requestID(body); s.answers[own] != nil {
		key = own
	}
	queue := s.answers[key]
	if len(queue) == 0 {
		return status(http.StatusNotFound), nil
	}
	if len(queue) > 1 {
		s.answers[key] = queue[1:]
	}
	return queue[0], nil
}

// requests are those of a path so far.
func (s *script) requests(path string) []exchanged {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []exchanged
	for _, e := range s.seen {
		if e.path == path {
			out = append(out, e)
		}
	}
	return out
}

// bodies are the bodies of a path's requests.
func (s *script) bodies(path string) []string {
	var out []string
	for _, e := range s.requests(path) {
		out = append(out, e.body)
	}
	return out
}

// times are when a path's requests came.
func (s *script) times(path string) []time.Duration {
	var out []time.Duration
	for _, e := range s.requests(path) {
		out = append(out, e.at)
	}
	return out
}

// watched is a client of a scripted server, with what it told.
type watched struct {
	*Client
	*script
	mu     sync.Mutex
	events []Event
	logged *bytes.Buffer
}

func watch(t *testing.T, answers map[string][]answer) *watched {
	t.Helper()
	w := &watched{script: newScript(answers), logged: &bytes.Buffer{}}
	var err error
	w.Client, err = New(Config{
		BaseURL: "http://server.test/", APIKey: testKey + "\n", UserAgent: "test/1", HTTP: &http.Client{Transport: w.script},
		Logger:  slog.New(slog.NewJSONHandler(w.logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Observe: w.note,
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *watched) note(e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

// told are the events so far, as one line each.
func (w *watched) told() []string {
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

// bubble runs a test in a day of fake time, and fails it if a goroutine is left.
func bubble(t *testing.T, test func(t *testing.T, ctx context.Context)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		test(t, ctx)
	})
}

// seqIDs reads seq_id out of JSON bodies.
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

// mustModel creates the model "s:train:0"; the script answers for it.
func (w *watched) mustModel(t *testing.T, ctx context.Context) *Model {
	t.Helper()
	w.answers["create_model"] = []answer{ok(`{"request_id":"new"}`)}
	w.answers["retrieve_future#new"] = []answer{ok(`{"model_id":"s:train:0","type":"create_model"}`)}
	model, err := w.CreateModel(ctx, tinker.CreateModelRequest{Session: "s", BaseModel: "base", Lora: tinker.DefaultLora()})
	if err != nil {
		t.Fatal(err)
	}
	return model
}
