// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// serveHeartbeat answers the manager, probes and scrapers until ctx ends.
func (l *learner) serveHeartbeat(ctx context.Context) {
	tls, err := l.config.Link.ServerTLS()
	if err != nil {
		l.cancel(fmt.Errorf("serving heartbeats: %w", err))
		return
	}
	server := &http.Server{
		Handler: l.routes(), TLSConfig: tls, ReadHeaderTimeout: 5 * time.Second,
		ErrorLog: slog.NewLogLogger(l.config.Logger.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ServeTLS(l.config.Heartbeat, "", ""); err != nil && ctx.Err() == nil {
		l.cancel(fmt.Errorf("serving heartbeats: %w", err))
	}
}

func (l *learner) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(contract.HeartbeatPath, contract.HeartbeatHandler(l.file.Run.UID, l.config.Link.Authorizes, l.beat))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, exposition(l.status.snapshot("")))
	})
	return mux
}

// beat answers a heartbeat, and does what it asks for.
func (l *learner) beat(request contract.HeartbeatRequest) contract.HeartbeatReply {
	if request.Attempt > l.file.Attempt {
		l.server.Fence()
		l.fence(request.Attempt)
	}
	if request.Desired == contract.DesiredDrain && request.Attempt <= l.file.Attempt {
		l.drainOnce.Do(func() { close(l.drain) })
	}
	reply := l.status.snapshot(l.waiting())
	reply.Progress.WorkersSeen = l.board.Alive()
	return reply
}

// exposition gives the status in the text format of Prometheus.
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
		"training_seconds_total": reply.Progress.TrainingSeconds,
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
