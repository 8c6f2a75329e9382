// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package health has a circuit breaker for each environment of a run that a server provides. While an environment's
// breaker is open, no episode of it begins at this worker: episodes wait, the learner is informed, and the server is
// checked in growing intervals until it is available again.
//
// A breaker opens when the server takes no session, or when episodes of several groups in a row end in faults. Waiting
// costs no try: an episode that could not begin begins later with the same seeds, so that an outage leaves no trace in
// the weights. Only groups that the learner decides to skip end in faults at once.
package health

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// pauses are the pauses before checks of an unavailable environment.
var pauses = wait.Backoff{First: time.Second, Longest: 30 * time.Second}

// checkTimeout bounds one check.
const checkTimeout = time.Minute

// maxEvidence bounds the evidence of a failure, in bytes.
const maxEvidence = 512

// Monitor holds the breakers of a worker by the names of the environments. It is safe for concurrent use.
type Monitor struct {
	// ctx ends the checks.
	ctx     context.Context
	logger  *slog.Logger
	calls   *environment.Calls
	changes wait.Signal
	checks  sync.WaitGroup

	mu       sync.Mutex
	breakers map[string]*breaker
	skipped  map[string]bool
}

// NewMonitor returns a monitor whose checks end with ctx. The calls count the checks that do not return; nil counts
// nothing.
func NewMonitor(ctx context.Context, logger *slog.Logger, calls *environment.Calls) *Monitor {
	return &Monitor{ctx: ctx, logger: logger, calls: calls, breakers: map[string]*breaker{}}
}

// Wait waits until no check is in progress, after the monitor's context has ended.
func (m *Monitor) Wait() { m.checks.Wait() }

// Group returns the health of an environment for the episodes of a group. A group that may be skipped ends in faults
// while the learner skips the environment. Group returns nil for an environment without a server.
func (m *Monitor) Group(name string, env environment.Environment, slot int64, maySkip bool) *Group {
	checker := environment.CheckerOf(env)
	if checker == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.breakers[name]
	if b == nil {
		b = &breaker{name: name, pauses: wait.Pauses{Backoff: pauses}}
		m.breakers[name] = b
	}
	b.checker = checker
	return &Group{monitor: m, breaker: b, slot: slot, maySkip: maySkip}
}

// Problems returns why environments are unavailable, by their names, and the codes that are finer than
// EnvironmentUnavailable.
func (m *Monitor) Problems() (problems, codes map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	problems, codes = map[string]string{}, map[string]string{}
	for name, b := range m.breakers {
		if !b.open {
			continue
		}
		problems[name] = b.problem
		if b.code != problem.EnvironmentUnavailable {
			codes[name] = string(b.code)
		}
	}
	return problems, codes
}

// Skip sets the environments that the learner skips.
func (m *Monitor) Skip(names []string) {
	skipped := map[string]bool{}
	for _, name := range names {
		skipped[name] = true
	}
	m.mu.Lock()
	changed := !maps.Equal(m.skipped, skipped)
	m.skipped = skipped
	m.mu.Unlock()
	if changed {
		m.changes.Notify()
	}
}

// open opens a breaker and begins to check its environment. The lock is held.
func (m *Monitor) open(b *breaker, err error) {
	b.trip(err)
	m.logger.Warn("environment is unavailable and is checked until it is available", "environment", b.name, "pause",
		b.pauses.Base(b.pauses.Failures+1).String(), "err", err)
	m.checks.Go(func() { m.check(b) })
	m.changes.Notify()
}

// checkOnce checks an environment. A check has a time limit, and one that panics has failed.
func (m *Monitor) checkOnce(name string, checker environment.Checker) error {
	ctx, stop := context.WithTimeout(m.ctx, checkTimeout)
	defer stop()
	_, err := environment.Call(ctx, m.calls, "checking environment "+name, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, checker.Check(ctx)
	})
	return err
}

// check checks an environment until it is available.
func (m *Monitor) check(b *breaker) {
	for {
		m.mu.Lock()
		pause, checker := b.pauses.Next(), b.checker
		m.mu.Unlock()
		if wait.Sleep(m.ctx, pause) != nil {
			return
		}
		err := m.checkOnce(b.name, checker)
		if m.ctx.Err() != nil {
			return
		}
		m.mu.Lock()
		if err == nil {
			b.close()
			m.mu.Unlock()
			m.logger.Info("environment is available again", "environment", b.name)
			m.changes.Notify()
			return
		}
		b.trip(err)
		m.mu.Unlock()
	}
}
