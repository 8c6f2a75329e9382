// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/tinker-operator/tinker-operator/internal/broker"
)

const (
	// headerPatience is how long a client may take to send the headers of a request.
	headerPatience = 10 * time.Second
	// idlePatience is how long a connection without a request stays open.
	idlePatience = 2 * time.Minute
	// closePatience is how long the servers wait for answers when the process ends.
	closePatience = 2 * time.Second
	// certificateInterval is how often the files of the certificate are looked at, besides notices of the kernel.
	certificateInterval = 10 * time.Second
	// maxStreams is how many requests a connection may have at once: a client has many long polls.
	maxStreams = 1000
)

// serve serves runs, probes and Prometheus until the caller calls stop.
func (p *process) serve(ctx context.Context) (stop func(), err error) {
	watcher, err := certwatcher.New(filepath.Join(p.tlsDir, "tls.crt"), filepath.Join(p.tlsDir, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	go func() {
		if err := watcher.WithWatchInterval(certificateInterval).Start(ctx); err != nil {
			p.log.Error("watching the certificate", "err", err)
		}
	}()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.listen)
	if err != nil {
		return nil, fmt.Errorf("serving runs: %w", err)
	}
	runs := &http.Server{
		Handler: p.handler(), ReadHeaderTimeout: headerPatience, IdleTimeout: idlePatience,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: watcher.GetCertificate},
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams, SendPingTimeout: 30 * time.Second,
			PingTimeout: 15 * time.Second},
	}
	go func() { _ = runs.ServeTLS(listener, "", "") }() // it returns http.ErrServerClosed
	p.log.Info("listening", "address", listener.Addr().String())
	servers := []*http.Server{runs}
	if p.healthListen != "" {
		plain, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.healthListen)
		if err != nil {
			_ = runs.Close()
			return nil, fmt.Errorf("serving health: %w", err)
		}
		health := &http.Server{Handler: p.healthHandler(), ReadHeaderTimeout: headerPatience}
		go func() { _ = health.Serve(plain) }()
		servers = append(servers, health)
	}
	return func() { shutDown(servers) }, nil
}

// shutDown tells the clients that the connections end, and ends those that have no answer after closePatience.
func shutDown(servers []*http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	for _, server := range servers {
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	}
}

// isReady reports whether the requests of runs should be routed to this process.
func (p *process) isReady() bool {
	return p.ready.Load() && !p.draining.Load() && p.holds() == nil
}

// handler returns a handler that passes requests to the broker, or refuses them while the process is a standby.
func (p *process) handler() http.Handler {
	mux := p.probes()
	standby := broker.Standby(p.endpoint)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		p.inProgress.Add(1)
		defer p.inProgress.Add(-1)
		if !p.ready.Load() {
			standby.ServeHTTP(w, r)
			return
		}
		p.current.Load().ServeHTTP(w, r)
	})
	return mux
}

func (p *process) healthHandler() http.Handler {
	mux := p.probes()
	mux.Handle("GET /metrics", promhttp.HandlerFor(p.metrics.registry, promhttp.HandlerOpts{}))
	return mux
}

func (p *process) probes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !p.isReady() {
			http.Error(w, "this broker is a standby", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusOK)
	})
	return mux
}
