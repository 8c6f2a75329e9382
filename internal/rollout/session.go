// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// Endpoint is what a worker needs of the Tinker API.
type Endpoint interface {
	CreateSamplingSession(ctx context.Context, session string, seq int64, modelPath, baseModel string) (string, error)
	Sample(ctx context.Context, request tinker.SampleRequest) (tinker.SampleResult, error)
	Heartbeat(ctx context.Context, session string) error
	KeepAlive(ctx context.Context, session string, lost func(error))
}

// distrust is how long a session that was found to be gone is not taken from the learner again: it may not
// have noticed yet.
const distrust = 15 * time.Second

// sessions are the rollout session, which the learner makes, and the sampling sessions within it.
type sessions struct {
	endpoint Endpoint
	logger   *slog.Logger
	changed  signal

	mu sync.Mutex
	// current is empty while there is none that lives.
	current string
	// lost is the last one that was found to be gone, for as long as it is distrusted.
	lost string
	// samplers of the current session.
	samplers map[samplerKey]*sampler
}

// samplerKey names a sampling session.
type samplerKey struct {
	session string
	number  int64
}

// sampler is a sampling session, or its making.
type sampler struct {
	made chan struct{}
	id   string
	err  error
}

// policyGoneError says that the weights of a lease are not there any more, or cannot be sampled from.
type policyGoneError struct{ err error }

// Error implements error.
func (e *policyGoneError) Error() string { return "the policy cannot be sampled: " + e.err.Error() }

// Unwrap gives the cause.
func (e *policyGoneError) Unwrap() error { return e.err }

// use takes the session that the learner names.
func (s *sessions) use(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session == "" || session == s.current || session == s.lost {
		return
	}
	s.logger.Info("sampling within a session", "session", session)
	s.current = session
	s.samplers = map[samplerKey]*sampler{}
	s.changed.raise()
}

// lose notes that the endpoint does not know the session any more.
func (s *sessions) lose(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session != s.current || session == "" {
		return
	}
	s.logger.Warn("the endpoint has lost the session", "session", session)
	s.current, s.lost = "", session
	s.samplers = map[samplerKey]*sampler{}
	s.changed.raise()
	time.AfterFunc(distrust, func() { s.trust(session) })
}

// trust lets a session that was lost be used again, should the learner insist.
func (s *sessions) trust(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == session {
		s.lost = ""
	}
}

// name gives the current session, empty while there is none.
func (s *sessions) name() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// await waits for a session that lives.
func (s *sessions) await(ctx context.Context) (string, error) {
	for {
		changed := s.changed.next()
		if session := s.name(); session != "" {
			return session, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// sampler gives the id of the sampling session of that number, in whatever session lives, over the named
// weights. It makes it where need be. An error is the context's or a *policyGoneError.
func (s *sessions) sampler(ctx context.Context, number int64, weights string) (samplerKey, string, error) {
	for {
		session, err := s.await(ctx)
		if err != nil {
			return samplerKey{}, "", err
		}
		key := samplerKey{session: session, number: number}
		id, err := s.open(ctx, key, weights)
		if err == nil {
			return key, id, nil
		}
		if err := s.recover(ctx, session, err); err != nil {
			return samplerKey{}, "", err
		}
	}
}

// open asks for a sampling session once, however many want it.
func (s *sessions) open(ctx context.Context, key samplerKey, weights string) (string, error) {
	s.mu.Lock()
	made, ok := s.samplers[key]
	if !ok && key.session == s.current {
		made = &sampler{made: make(chan struct{})}
		s.samplers[key] = made
	}
	s.mu.Unlock()
	if made == nil {
		// Another session lives by now.
		return "", fmt.Errorf("session %s was replaced", key.session)
	}
	if !ok {
		made.id, made.err = s.endpoint.CreateSamplingSession(ctx, key.session, key.number, weights, "")
		if made.err != nil {
			s.forget(key, made)
		}
		close(made.made)
	}
	select {
	case <-made.made:
		return made.id, made.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// forget drops a sampling session, so that it is made again.
func (s *sessions) forget(key samplerKey, made *sampler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.samplers[key] == made || made == nil {
		delete(s.samplers, key)
	}
}

// recover gives nil when it is worth trying again to make a sampling session in the session that lives
// then; err is why it could not be made. The endpoint gives the same answer for a session that is gone and
// for weights that are, so it is asked for the session.
func (s *sessions) recover(ctx context.Context, session string, err error) error {
	category := client.CategoryFrom(err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case s.name() != session || category == tinker.CategoryCanceled:
		return nil
	case category == tinker.CategoryUnauthorized:
		// The key may be mended; the learner says what is wrong meanwhile.
		return pause(ctx, distrust)
	}
	switch client.CategoryFrom(s.endpoint.Heartbeat(ctx, session)) {
	case tinker.CategoryNotFound, tinker.CategoryFutureLost:
		s.lose(session)
		return nil
	}
	return &policyGoneError{err: err}
}

// keepAlive sends heartbeats for whatever session lives, until ctx ends.
func (s *sessions) keepAlive(ctx context.Context) {
	for ctx.Err() == nil {
		session, err := s.await(ctx)
		if err != nil {
			return
		}
		changed := s.changed.next()
		if s.name() != session {
			continue
		}
		beating, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.endpoint.KeepAlive(beating, session, func(error) { s.lose(session) })
		}()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		stop()
		<-done
	}
}
