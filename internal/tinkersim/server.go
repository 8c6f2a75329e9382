// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/dialect"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/latency"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/limit"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/sampling"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/state"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/stats"
)

// Server is the simulator. It is an http.Handler and safe for concurrent use.
type Server struct {
	options Options
	secret  []byte // signs tokens
	// Faults, forced samples, counters, latencies and limits survive a restart.
	faults   *fault.Set
	forced   *sampling.ForcedSamples
	counters *stats.Counters
	latency  *latency.Simulator
	limits   *limit.Limiter
	front    http.Handler

	restarting sync.Mutex
	state      atomic.Pointer[state.State]
}

// New opens the directory and starts a server, which runs until Close.
func New(options Options) (*Server, error) {
	if options.Dir == "" {
		return nil, errors.New("starting tinkersim: Dir is empty")
	}
	if err := options.validate(); err != nil {
		return nil, fmt.Errorf("starting tinkersim: %w", err)
	}
	options = options.withDefaults()
	s := &Server{options: options, secret: make([]byte, 32), counters: stats.NewCounters(),
		forced: &sampling.ForcedSamples{}}
	s.limits = limit.New(options.Limits, options.Clock)
	s.latency = latency.NewSimulator(options.Latency, options.LatencyObserver)
	if _, err := io.ReadFull(options.Random, s.secret); err != nil {
		return nil, fmt.Errorf("starting tinkersim: %w", err)
	}
	var err error
	if s.faults, err = fault.NewSet(options.Faults, options.Clock); err != nil {
		return nil, fmt.Errorf("starting tinkersim: %w", err)
	}
	first, err := state.New(options.stateOptions(s.forced, s.latency), s.faults, s.counters)
	if err != nil {
		return nil, fmt.Errorf("starting tinkersim: %w", err)
	}
	s.state.Store(first)
	s.front, err = dialect.Wrap(options.Dialect, s.routes(), dialect.Options{PollHold: options.PollHold,
		LoadSampler: s.loadSampler})
	if err != nil {
		first.Close()
		return nil, fmt.Errorf("starting tinkersim: %w", err)
	}
	return s, nil
}

// loadSampler submits a load of sampler weights into the model that saved them.
func (s *Server) loadSampler(model string, seq int64, name string) error {
	return s.state.Load().Models.LoadSampler(model, seq, name)
}

// ServeHTTP serves a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.front.ServeHTTP(w, r) }

// Close stops all work and waits until it has stopped. Polls that wait get 503, as do further requests.
func (s *Server) Close() {
	s.restarting.Lock()
	defer s.restarting.Unlock()
	s.state.Load().Close()
}

// Restart has the effect of a restart of the server's process: models, sessions and futures are forgotten,
// runs and checkpoints stay. Unlike after a restart of the process, faults stay active and counters continue.
func (s *Server) Restart() error {
	s.restarting.Lock()
	defer s.restarting.Unlock()
	s.state.Load().Close()
	next, err := state.New(s.options.stateOptions(s.forced, s.latency), s.faults, s.counters)
	if err != nil {
		return fmt.Errorf("restarting tinkersim: %w", err)
	}
	s.limits.Forget()
	s.state.Store(next)
	return nil
}

// Faults returns the active faults, for tests in the same process.
func (s *Server) Faults() *fault.Set { return s.faults }

// ForcedSamples returns the active rules of forced samples, for tests in the same process.
func (s *Server) ForcedSamples() *sampling.ForcedSamples { return s.forced }

// Refused returns how many requests the limits refused.
func (s *Server) Refused() int64 { return s.limits.Refused() }

// Stats returns the counters of the server.
func (s *Server) Stats() Stats {
	s.restarting.Lock()
	defer s.restarting.Unlock()
	return s.state.Load().Stats()
}

// Stats are the counters of a server.
type Stats = stats.Stats
