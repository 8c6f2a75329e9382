// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// sessions is what keeping a session alive needs of the API.
type sessions interface {
	CreateSession(ctx context.Context, request client.SessionRequest) (string, error)
	Heartbeat(ctx context.Context, session string) error
	KeepAlive(ctx context.Context, session string, lost func(error))
}

// keeper has one session at a time: it makes one when asked, keeps it alive for as long as alive lasts, and
// makes another once that is gone.
type keeper struct {
	api    sessions
	alive  context.Context
	tasks  *sync.WaitGroup
	tags   []string
	logger *slog.Logger
	// changed is told of each session that begins; nil is nobody.
	changed func(session string)

	mu      sync.Mutex
	session string
}

// get gives the session, making one if there is none.
func (k *keeper) get(ctx context.Context) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.session != "" {
		return k.session, nil
	}
	session, err := k.api.CreateSession(ctx, client.SessionRequest{Tags: k.tags})
	if err != nil {
		return "", fmt.Errorf("making a session: %w", err)
	}
	k.begin(session)
	return session, nil
}

// adopt takes over a session that an earlier attempt made, if it still lives.
func (k *keeper) adopt(ctx context.Context, session string) {
	if session == "" || k.api.Heartbeat(ctx, session) != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.begin(session)
}

// begin keeps a session alive. The lock is held.
func (k *keeper) begin(session string) {
	k.session = session
	if k.changed != nil {
		k.changed(session)
	}
	k.tasks.Go(func() {
		k.api.KeepAlive(k.alive, session, func(err error) {
			k.logger.Warn("session is gone", "session", session, "err", err)
			k.drop(session)
		})
	})
}

// keep makes another session whenever there is none, until ctx ends. Trouble shows as the endpoint's.
func (k *keeper) keep(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_, _ = k.get(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// drop forgets a session that is gone; the next get makes another.
func (k *keeper) drop(session string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.session == session {
		k.session = ""
	}
}
