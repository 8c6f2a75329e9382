// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// The transport itself replays requests that carry X-Idempotency-Key on a connection that was in use before:
// retry does not see it, so MayHaveRun is false.
func TestReviewTransportReplays(t *testing.T) {
	t.Skip("finding not repaired yet: tinker M6")
	var deletes atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if r.Method != http.MethodDelete {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, "{}")
			return
		}
		if deletes.Add(1) == 1 { // deleted; the response is lost
			conn, _, _ := w.(http.Hijacker).Hijack()
			conn.(*net.TCPConn).SetLinger(-1)
			conn.Close()
			return
		}
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"detail":"Checkpoint not found"}`)
	}))
	defer server.Close()
	events := 0
	c, err := New(Config{BaseURL: server.URL, APIKey: "k", Observe: func(Event) { events++ }})
	if err != nil {
		t.Fatal(err)
	}
	err = c.DeleteCheckpoint(t.Context(), "tinker://r/weights/n")
	t.Errorf("deletes that arrived %d, events %d, error %v, MayHaveRun %v", deletes.Load(), events, err, MayHaveRun(err))
}
