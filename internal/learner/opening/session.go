// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package opening

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// sessionAPI is the part of the Tinker API that a keeper calls.
type sessionAPI interface {
	CreateSession(ctx context.Context, request client.SessionRequest) (string, error)
	Heartbeat(ctx context.Context, session string) error
	KeepAlive(ctx context.Context, session string, lost func(error))
}

// SessionKeeper has one session at a time: it makes a session when it is asked for one, keeps it alive, and makes
// another once the session has expired.
type SessionKeeper struct {
	api    sessionAPI
	alive  context.Context
	tasks  *sync.WaitGroup
	logger *slog.Logger
	// changed is called with each session that begins. It may be nil.
	changed func(session string)

	mu      sync.Mutex
	session string
}

// NewSessionKeeper returns a keeper without a session. Its sessions are kept alive until alive ends, by goroutines of
// tasks.
func NewSessionKeeper(alive context.Context, calls sessionAPI, tasks *sync.WaitGroup, logger *slog.Logger,
	changed func(session string)) *SessionKeeper {
	return &SessionKeeper{api: calls, alive: alive, tasks: tasks, logger: logger, changed: changed}
}

// Get returns the session, and makes one if no session exists.
func (k *SessionKeeper) Get(ctx context.Context) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.session != "" {
		return k.session, nil
	}
	session, err := k.api.CreateSession(ctx, client.SessionRequest{Tags: []string{"tinker-operator"}})
	if err != nil {
		return "", fmt.Errorf("making a session: %w", err)
	}
	k.begin(session)
	return session, nil
}

// Current returns the session; "" if no session exists.
func (k *SessionKeeper) Current() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.session
}

// Adopt takes over a session that an earlier attempt made, if it is still alive.
func (k *SessionKeeper) Adopt(ctx context.Context, session string) {
	if session == "" || k.api.Heartbeat(ctx, session) != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.begin(session)
}

// begin keeps a session alive. The lock is held.
func (k *SessionKeeper) begin(session string) {
	k.session = session
	if k.changed != nil {
		k.changed(session)
	}
	k.tasks.Go(func() {
		k.api.KeepAlive(k.alive, session, func(err error) {
			k.logger.Warn("session has expired", "session", session, "err", err)
			k.Drop(session)
		})
	})
}

// Keep makes another session whenever there is none, until ctx ends. A failure shows as the endpoint's problem.
func (k *SessionKeeper) Keep(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_, _ = k.Get(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// Check drops the session if the endpoint has lost it.
func (k *SessionKeeper) Check(ctx context.Context) {
	k.mu.Lock()
	session := k.session
	k.mu.Unlock()
	if session == "" {
		return
	}
	if err := k.api.Heartbeat(ctx, session); failure.CodeOf(err) == failure.Missing {
		k.logger.Warn("session is lost", "session", session, "err", err)
		k.Drop(session)
	}
}

// Drop forgets a session that has expired; the next Get makes another.
func (k *SessionKeeper) Drop(session string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.session == session {
		k.session = ""
	}
}
