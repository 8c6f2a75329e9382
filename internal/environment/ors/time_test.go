// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package ors

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/ors/orstest"
)

// direct answers requests in this process, so that they work with the time of a synctest bubble. If call is set, it
// returns the bodies of the replies to calls of tools.
type direct struct {
	server *orstest.Server
	call   func(ctx context.Context) (io.Reader, error)
}

// RoundTrip implements http.RoundTripper.
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if d.call != nil && strings.HasSuffix(r.URL.Path, "/call") {
		body, err := d.call(r.Context())
		if err != nil {
			return nil, err
		}
		header := http.Header{"Content-Type": {"text/event-stream"}}
		return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(body), Request: r}, nil
	}
	recorder := httptest.NewRecorder()
	d.server.ServeHTTP(recorder, r)
	return recorder.Result(), nil
}

// connectDirectly returns a backend with the times of production.
func connectDirectly(t *testing.T, d direct, options Options) *Backend {
	t.Helper()
	options.BaseURL, options.HTTP = "http://environment.test", &http.Client{Transport: d}
	b, err := New(options)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return b
}

// slowBytes is a stream that yields a byte of a comment after each pause, until its context ends.
type slowBytes struct {
	ctx   context.Context
	pause time.Duration
}

// Read implements io.Reader.
func (s slowBytes) Read(p []byte) (int, error) {
	select {
	case <-time.After(s.pause):
		return copy(p, ":"), nil
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
}

// expectFault fails the test unless err is a fault that may pass and names its cause.
func expectFault(t *testing.T, err error, cause string) {
	t.Helper()
	var fault *environment.Fault
	if !errors.As(err, &fault) || fault.Permanent || !strings.Contains(err.Error(), cause) {
		t.Errorf("error is %v, want a fault that is not permanent and contains %q", err, cause)
	}
}

func TestCallsEndInTime(t *testing.T) {
	never := func(ctx context.Context) (io.Reader, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	trickle := func(pause time.Duration) func(context.Context) (io.Reader, error) {
		return func(ctx context.Context) (io.Reader, error) { return slowBytes{ctx, pause}, nil }
	}
	cases := map[string]struct {
		call  func(context.Context) (io.Reader, error)
		takes time.Duration
		want  error
	}{
		"the call never gets an answer":   {never, 30 * time.Second, errSilent},
		"the reply pauses for a minute":   {trickle(time.Minute), 30 * time.Second, errSilent},
		"the reply comes byte by byte":    {trickle(20 * time.Second), 4 * time.Minute, errCallTimeout},
		"the reply comes without a pause": {trickle(100 * time.Millisecond), 4 * time.Minute, errCallTimeout},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newServer()
				session, _, _ := begin(t, connectDirectly(t, direct{server, tc.call}, Options{CallTimeout: 4 * time.Minute}))
				began := time.Now()
				_, err := session.Call(t.Context(), chat.ToolCall{Name: "look", Arguments: "{}"})
				expectFault(t, err, tc.want.Error())
				if took := time.Since(began); took != tc.takes {
					t.Errorf("Call took %v, want %v", took, tc.takes)
				}
				if got := countCalls(server); got > 0 {
					t.Errorf("the server was called %d times more, though it may have run the tool", got)
				}
			})
		})
	}
}

// plainly answers as direct does, but with JSON instead of streams, and with the results of tools after a pause.
type plainly struct {
	direct
	pause time.Duration
}

// RoundTrip implements http.RoundTripper.
func (p plainly) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/call") {
		select {
		case <-time.After(p.pause):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	response, err := p.direct.RoundTrip(r)
	if err != nil || !isStream(response) {
		return response, err
	}
	var id string
	text, err := readStream(response.Body, func(task string) { id = task })
	if text == "" {
		text = `{"sid": "` + id + `"}`
	}
	response.Header.Set("Content-Type", "application/json")
	response.Body = io.NopCloser(strings.NewReader(text))
	return response, err
}

// TestSlowToolsWithoutStreams calls a server that sends its JSON when the tool has ended.
func TestSlowToolsWithoutStreams(t *testing.T) {
	for pause, want := range map[time.Duration]error{3 * time.Minute: nil, 5 * time.Minute: errCallTimeout} {
		synctest.Test(t, func(t *testing.T) {
			options := Options{CallTimeout: 4 * time.Minute, BaseURL: "http://environment.test",
				HTTP: &http.Client{Transport: plainly{direct{server: newServer()}, pause}}}
			b, err := New(options)
			if err != nil {
				t.Fatal(err)
			}
			session, _, _ := begin(t, b)
			began := time.Now()
			_, err = session.Call(t.Context(), chat.ToolCall{Name: "look", Arguments: "{}"})
			if took := time.Since(began); took != min(pause, options.CallTimeout) {
				t.Errorf("the call took %v", took)
			}
			if want == nil && err != nil {
				t.Errorf("a tool that takes %v: %v", pause, err)
			}
			if want != nil {
				expectFault(t, err, want.Error())
			}
		})
	}
}

func TestCapacityThatDoesNotComeIsAFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		server.Capacity = 1
		b := connectDirectly(t, direct{server: server}, Options{})
		begin(t, b)
		began := time.Now()
		_, err := b.Open(t.Context(), environment.Task{Split: "train"})
		expectFault(t, err, "maximum capacity")
		if took := time.Since(began); took != DefaultCreateTimeout {
			t.Errorf("Open took %v, want %v", took, DefaultCreateTimeout)
		}
	})
}

func TestMaxSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := connectDirectly(t, direct{server: newServer()}, Options{MaxSessions: 1})
		first, _, _ := begin(t, b)
		if _, err := b.Open(t.Context(), environment.Task{Split: "train"}); err == nil {
			t.Error("a second session was opened")
		}
		first.Close(t.Context())
		second, err := b.Open(t.Context(), environment.Task{Split: "train"})
		if err != nil {
			t.Fatalf("Open after Close: %v", err)
		}
		second.Close(t.Context())
	})
}
