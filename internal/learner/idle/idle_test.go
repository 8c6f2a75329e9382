// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package idle

import (
	"net"
	"net/http"
	"testing"
	"time"
)

// TestServeEndsWhenNobodyAsks keeps a request in progress while shorter ones end, and checks that the server ends only
// after the long one.
func TestServeEndsWhenNobodyAsks(t *testing.T) {
	const after = 300 * time.Millisecond
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			time.Sleep(3 * after)
		}
	})
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- Serve(t.Context(), handler, listener, after) }()
	long := make(chan error, 1)
	get := func(path string) error {
		answer, err := http.Get("http://" + listener.Addr().String() + path)
		if err == nil {
			_ = answer.Body.Close()
		}
		return err
	}
	go func() { long <- get("/long") }()
	for range 3 {
		if err := get("/short"); err != nil {
			t.Error(err)
		}
	}
	if err := <-long; err != nil {
		t.Errorf("a request in progress ended with the server: %v", err)
	}
	if err := <-ended; err != nil || time.Since(began) < 4*after {
		t.Errorf("the server ended after %s with %v", time.Since(began), err)
	}
}
