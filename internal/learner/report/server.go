// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/heartbeat"
)

// Server answers heartbeats of the manager and probes of Kubernetes.
type Server struct {
	RunUID      string
	Credentials contract.Credentials
	Status      *Status
	// Beat answers a heartbeat and follows its orders.
	Beat   func(contract.HeartbeatRequest) contract.HeartbeatReply
	Logger *slog.Logger
}

// Serve answers until ctx ends. It closes the listener.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	tls, err := s.Credentials.ServerTLS()
	if err != nil {
		return fmt.Errorf("serving heartbeats: %w", err)
	}
	server := &http.Server{
		Handler: s.routes(), TLSConfig: tls, ReadHeaderTimeout: 5 * time.Second,
		ErrorLog: slog.NewLogLogger(s.Logger.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ServeTLS(listener, "", ""); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serving heartbeats: %w", err)
	}
	return nil
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(contract.HeartbeatPath, heartbeat.Handler(s.RunUID, s.Credentials.AuthorizesManager, s.Beat))
	ok := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }
	// A heartbeat without an attempt requests nothing, but takes the locks that any other does.
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		s.Beat(contract.HeartbeatRequest{RunUID: s.RunUID})
		ok(w, r)
	})
	mux.HandleFunc("GET /readyz", ok)
	return mux
}
