// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// serveHealth answers /healthz, and /readyz with 200 once ready returns true. An empty address serves nothing.
func serveHealth(ctx context.Context, address string, ready func() bool) (io.Closer, error) {
	server := &http.Server{Handler: healthHandler(ready), ReadHeaderTimeout: 5 * time.Second}
	if address == "" {
		return server, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serving health: %w", err)
	}
	// Serve returns http.ErrServerClosed after Close, which is not a failure.
	go func() { _ = server.Serve(listener) }()
	return server, nil
}

func healthHandler(ready func() bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready() {
			http.Error(w, "no learner has answered yet", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusOK)
	})
	return mux
}
