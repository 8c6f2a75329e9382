// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// Endpoint has the methods of the Tinker API that a worker needs.
type Endpoint interface {
	CreateSamplingSession(ctx context.Context, session string, seq int64, modelPath, baseModel string) (string, error)
	Sample(ctx context.Context, request tinker.SampleRequest) (tinker.SampleResult, error)
	Heartbeat(ctx context.Context, session string) error
	KeepAlive(ctx context.Context, session string, lost func(error))
}

// lostPeriod is how long the worker ignores a lost session that the learner still names: the learner may not have
// noticed the loss yet.
const lostPeriod = 15 * time.Second

// sessions are the rollout session, which the learner makes, and the sampling sessions within it.
type sessions struct {
	endpoint Endpoint
	logger   *slog.Logger
	pressure *Pressure
	changes  wait.Signal

	mu sync.Mutex
	// current is the live session, or empty.
	current string
	// lost is the last session that the endpoint lost, for lostPeriod.
	lost string
	// samplers are the latest sampling sessions within the current session, and order lists them, the oldest first.
	samplers map[samplerKey]*sampler
	order    []samplerKey
}

// mostSamplers limits the sampling sessions that are remembered: each version has one. An older sampling session that
// is needed again is made again under its number.
const mostSamplers = 64

// weights are the weights of a sampling session: saved sampler weights or, without a path, a base model.
type weights struct {
	path, base string
	// own says that the run has saved the weights itself: a working endpoint refuses them only if they are missing.
	own bool
}

// String names the weights for people.
func (w weights) String() string {
	return algorithm.Reference{Checkpoint: w.path, Model: w.base}.String()
}

// weightsOf returns the weights of a lease's sampler, which is a path of saved weights or the name of a base model.
func weightsOf(sampler string) weights {
	if strings.HasPrefix(sampler, "tinker://") {
		return weights{path: sampler, own: true}
	}
	return weights{base: sampler}
}

// samplerKey names a sampling session. A number stands for one set of weights at one path: the number of a lease
// follows from both.
type samplerKey struct {
	session string
	number  int64
}

// sampler is a sampling session, or one that is being made.
type sampler struct {
	made chan struct{}
	id   string
	err  error
}

// policyMissingError reports that the weights of a lease do not exist any more, or cannot be sampled from.
type policyMissingError struct{ err error }

// Error implements error.
func (e *policyMissingError) Error() string { return "the policy cannot be sampled: " + e.err.Error() }

// Unwrap returns the cause.
func (e *policyMissingError) Unwrap() error { return e.err }

// use switches to the session that the learner names.
func (s *sessions) use(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session == "" || session == s.current || session == s.lost {
		return
	}
	s.logger.Info("sampling within a session", "session", session)
	s.current = session
	s.samplers, s.order = map[samplerKey]*sampler{}, nil
	s.changes.Notify()
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
	s.samplers, s.order = map[samplerKey]*sampler{}, nil
	s.changes.Notify()
	time.AfterFunc(lostPeriod, func() { s.forgetLoss(session) })
}

// forgetLoss allows a lost session to be used again if the learner still names it.
func (s *sessions) forgetLoss(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == session {
		s.lost = ""
	}
}

// name returns the current session, or an empty string.
func (s *sessions) name() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// await waits for a live session.
func (s *sessions) await(ctx context.Context) (string, error) {
	return wait.For(ctx, &s.changes, func() (string, bool) {
		session := s.name()
		return session, session != ""
	})
}

// sampler returns the id of the sampling session with the given number and weights, within the live session. It makes
// the sampling session if there is none. An error is the context's or a *policyMissingError.
func (s *sessions) sampler(ctx context.Context, number int64, from weights) (samplerKey, string, error) {
	for failures := 1; ; failures++ {
		session, err := s.await(ctx)
		if err != nil {
			return samplerKey{}, "", err
		}
		key := samplerKey{session: session, number: number}
		id, err := s.open(ctx, key, from)
		if err == nil {
			return key, id, nil
		}
		if from.own && isOutage(err) {
			s.pressure.fail(problem.SamplingRefused, err)
			if err := wait.Sleep(ctx, samplePauses.After(failures)); err != nil {
				return samplerKey{}, "", err
			}
			continue
		}
		if err := s.recover(ctx, session, err); err != nil {
			return samplerKey{}, "", err
		}
	}
}

// isOutage reports whether an endpoint refuses to make a sampling session although it has no reason to: a working
// endpoint answers 404 if weights or a session are missing.
func isOutage(err error) bool {
	switch client.CategoryFrom(err) {
	case tinker.CategoryUser, tinker.CategoryTooLarge, tinker.CategoryUnsupported, tinker.CategoryConflict,
		tinker.CategoryProtocol,
		tinker.CategoryFutureLost:
		return true
	}
	return false
}

// open makes a sampling session once, however many callers want it.
func (s *sessions) open(ctx context.Context, key samplerKey, from weights) (string, error) {
	s.mu.Lock()
	made, ok := s.samplers[key]
	if !ok && key.session == s.current {
		made = &sampler{made: make(chan struct{})}
		s.samplers[key] = made
		s.order = append(s.order, key)
		if len(s.order) > mostSamplers {
			delete(s.samplers, s.order[0])
			s.order = s.order[1:]
		}
	}
	s.mu.Unlock()
	if made == nil {
		// The session was replaced meanwhile.
		return "", fmt.Errorf("session %s was replaced", key.session)
	}
	if !ok {
		made.id, made.err = s.endpoint.CreateSamplingSession(ctx, key.session, key.number, from.path, from.base)
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

// recover handles err, the failure to make a sampling session within session. It returns nil if the caller should try
// again within the session that is live then. The endpoint gives the same reply for a missing session and for missing
// weights, so recover checks the session by a heartbeat.
func (s *sessions) recover(ctx context.Context, session string, err error) error {
	category := client.CategoryFrom(err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case s.name() != session || category == tinker.CategoryCanceled:
		return nil
	case category == tinker.CategoryUnauthorized:
		// The API key may be corrected; the learner reports the problem meanwhile.
		return wait.Sleep(ctx, lostPeriod)
	}
	alive := s.endpoint.Heartbeat(ctx, session)
	switch category := client.CategoryFrom(alive); {
	case alive == nil:
		return &policyMissingError{err: err}
	case category == tinker.CategoryNotFound, category == tinker.CategoryFutureLost:
		s.lose(session)
		return nil
	default:
		// Whether the session exists is not known: the endpoint is out of order for this worker.
		s.pressure.fail(problem.EndpointFailing, err)
		return wait.Sleep(ctx, failurePause)
	}
}

// keepAlive sends heartbeats for the live session, until ctx ends.
func (s *sessions) keepAlive(ctx context.Context) {
	for ctx.Err() == nil {
		session, err := s.await(ctx)
		if err != nil {
			return
		}
		changed := s.changes.Changed()
		if s.name() != session {
			continue
		}
		alive, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.endpoint.KeepAlive(alive, session, func(error) { s.lose(session) })
		}()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		stop()
		<-done
	}
}
