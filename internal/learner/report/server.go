// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/heartbeat"
)

// Server answers heartbeats of the manager, probes of Kubernetes and scrapes of Prometheus.
type Server struct {
	RunUID      string
	Credentials contract.Credentials
	Status      *Status
	// Beat answers a heartbeat, and does what it asks for.
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
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if !heartbeat.HasBearer(r, s.Credentials.AuthorizesManager) {
			http.Error(w, "the manager's token is required", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, exposition(s.Status.Reply("")))
	})
	return mux
}

// exposition returns the status in the text format of Prometheus.
func exposition(reply contract.HeartbeatReply) string {
	values := map[string]float64{
		"step": float64(reply.Progress.Step), "steps": float64(reply.Progress.Steps),
		"cursor": float64(reply.Progress.Cursor), "attempt": float64(reply.Attempt),
		"workers":                float64(reply.Progress.WorkersSeen),
		"seconds_since_progress": reply.SecondsSinceProgress,
		"prompt_tokens_total":    float64(reply.Progress.Usage.PromptTokens),
		"sampled_tokens_total":   float64(reply.Progress.Usage.SampledTokens),
		"trained_tokens_total":   float64(reply.Progress.Usage.TrainedTokens),
		"bought_twice_tokens_total": float64(
			reply.Progress.Usage.BoughtTwiceTokens),
		"judge_prompt_tokens_total":  float64(reply.Progress.Usage.JudgePromptTokens),
		"judge_sampled_tokens_total": float64(reply.Progress.Usage.JudgeSampledTokens),
		"reference_tokens_total":     float64(reply.Progress.Usage.ReferenceTokens),
		"unconfirmed_tokens":         float64(reply.Progress.Usage.UnconfirmedTokens),
		"training_seconds_total":     reply.Progress.TrainingSeconds,
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&b, "tinker_learner_%s %g\n", name, values[name])
	}
	for _, name := range slices.Sorted(maps.Keys(reply.Progress.Metrics)) {
		fmt.Fprintf(&b, "tinker_learner_metric{name=%q} %g\n", name, reply.Progress.Metrics[name])
	}
	return b.String()
}
