// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
)

// grace is how long requests may take to finish after the signal to stop.
const grace = 10 * time.Second

// program is the server as a process.
type program struct {
	listen  string
	options tinkersim.Options
	log     *slog.Logger
}

// Run serves until the context ends. It returns nil after an orderly stop.
func (p *program) Run(ctx context.Context) error {
	// A second start with the same arguments fails here, before it touches the data.
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.listen)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	defer listener.Close()
	sim, err := tinkersim.New(p.options)
	if err != nil {
		return err
	}
	defer sim.Close()
	server := &http.Server{
		Handler:           sim,
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(p.log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	p.log.Info("serving", "url", "http://"+listener.Addr().String(), "model", tinkersim.ModelName, "data", p.options.Dir)
	select {
	case err := <-ended:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	p.log.Info("stopping")
	return p.stop(sim, server, ended)
}

// stop closes the simulator first, so that polls get a response instead of delaying the shutdown.
func (p *program) stop(sim *tinkersim.Server, server *http.Server, ended <-chan error) error {
	sim.Close()
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := server.Shutdown(ctx)
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if err != nil {
		return fmt.Errorf("stopping: %w", err)
	}
	return nil
}
