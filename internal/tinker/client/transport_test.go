// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/transport"
)

// longPolls is a server over real sockets. It accepts optim_step, and holds every poll until it is released.
type longPolls struct {
	release chan struct{}
	waiting atomic.Int64
	protos  sync.Map
}

func (s *longPolls) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.protos.Store(r.Proto, true)
	replies := map[string]string{
		"client/config": "{}", "create_model": `{"request_id":"new"}`, "optim_step": `{"request_id":"r"}`,
	}
	path := strings.TrimPrefix(r.URL.Path, apiPrefix)
	w.Header().Set("Content-Type", tinker.ContentJSON)
	if path != "retrieve_future" {
		io.WriteString(w, replies[path])
		return
	}
	var poll tinker.RetrieveRequest
	if err := json.NewDecoder(r.Body).Decode(&poll); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if poll.RequestID == "new" {
		io.WriteString(w, `{"model_id":"m"}`)
		return
	}
	s.waiting.Add(1)
	select {
	case <-s.release:
	case <-r.Context().Done():
	}
	io.WriteString(w, "{}")
}

// eventually polls a condition for five minutes of real time.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(5 * time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: not within five minutes", what)
		}
	}
}

// TestLongPollsOverSockets holds many polls at once, over plain HTTP and over TLS, then releases them, and checks that
// no goroutines remain.
func TestLongPollsOverSockets(t *testing.T) {
	for name, tc := range map[string]struct {
		tls   bool
		proto string
	}{
		"HTTP/1.1 without TLS": {proto: "HTTP/1.1"},
		"HTTP/2 with TLS":      {tls: true, proto: "HTTP/2.0"},
	} {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			checkLongPolls(t, tc.tls, tc.proto)
			eventually(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= before })
		})
	}
}

func checkLongPolls(t *testing.T, tls bool, proto string) {
	const polls = 300
	handler := &longPolls{release: make(chan struct{})}
	server := httptest.NewUnstartedServer(handler)
	transport, err := transport.New(transport.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if tls {
		server.EnableHTTP2 = true
		server.StartTLS()
		transport.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
	} else {
		server.Start()
	}
	defer server.Close()
	defer transport.CloseIdleConnections()
	api, err := New(Config{BaseURL: server.URL, APIKey: testKey, HTTP: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	model, err := api.CreateModel(ctx, tinker.CreateModelRequest{Session: "s"})
	if err != nil {
		t.Fatal(err)
	}
	var futures []*Future[tinker.OptimStepResult]
	for range polls {
		futures = append(futures, submitted(model.OptimStep(ctx, tinker.DefaultAdam())))
	}
	eventually(t, "all polls are held", func() bool { return handler.waiting.Load() == polls })
	close(handler.release)
	for _, future := range futures {
		if _, err := future.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := handler.protos.Load(proto); !ok {
		t.Errorf("no request used %s", proto)
	}
}

func TestDefaultTransport(t *testing.T) {
	api, err := New(Config{BaseURL: "https://server.test", APIKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	transport, ok := api.http.Transport.(*http.Transport)
	if !ok || !transport.ForceAttemptHTTP2 || transport.MaxIdleConnsPerHost < 1000 || transport.MaxIdleConns != 0 {
		t.Errorf("transport %+v", transport)
	}
	if api.http.CheckRedirect == nil {
		t.Error("redirects are followed")
	}
}

// TestTransportDoesNotReplay deletes a checkpoint over a connection that was in use before; the server deletes it and
// resets the connection. Only the client may send the request again, so that it knows that the first may have run.
func TestTransportDoesNotReplay(t *testing.T) {
	var deletes atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		switch {
		case r.Method != http.MethodDelete:
			w.Header().Set("Content-Type", tinker.ContentJSON)
			io.WriteString(w, "{}")
		case deletes.Add(1) == 1:
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			conn.(*net.TCPConn).SetLinger(-1)
			conn.Close()
		default:
			http.Error(w, `{"detail":"Checkpoint not found"}`, http.StatusNotFound)
		}
	}))
	defer server.Close()
	var events []Event
	api, err := New(Config{BaseURL: server.URL, APIKey: testKey, Observe: func(e Event) { events = append(events, e) }})
	if err != nil {
		t.Fatal(err)
	}
	if err := api.DeleteCheckpoint(t.Context(), "tinker://r/weights/n"); err != nil {
		t.Errorf("DeleteCheckpoint = %v", err)
	}
	if deletes.Load() != 2 || len(events) != 2 || events[0].Category != tinker.CategoryUnreachable || !events[1].Over {
		t.Errorf("%d deletes arrived, events %+v", deletes.Load(), events)
	}
}
