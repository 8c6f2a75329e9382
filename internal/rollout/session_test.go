// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// TestLossOfAFormerSessionChangesNothing reports the loss of a session that the learner has already replaced.
func TestLossOfAFormerSessionChangesNothing(t *testing.T) {
	s := &sessions{endpoint: newEndpoint(), logger: slog.New(slog.DiscardHandler)}
	s.use("session-0")
	s.use("session-1")
	key, _, err := s.sampler(t.Context(), 7, weights{path: "tinker://run/sampler_weights/v0"})
	if err != nil {
		t.Fatal(err)
	}
	s.lose("session-0")
	if got := s.name(); got != "session-1" || s.samplers[key] == nil {
		t.Errorf("the session is %q with the sampling sessions %v", got, s.samplers)
	}
}

// waitingEndpoint makes no sampling session before the context of the first call has ended.
type waitingEndpoint struct {
	*endpoint
	calls atomic.Int64
}

func (e *waitingEndpoint) CreateSamplingSession(ctx context.Context, session string, number int64, path,
	base string) (string, error) {
	if e.calls.Add(1) == 1 {
		<-ctx.Done()
		return "", failureOf(tinker.CategoryCanceled)
	}
	return e.endpoint.CreateSamplingSession(ctx, session, number, path, base)
}

// TestSamplingSessionOfARevokedGroup revokes a group while it makes a sampling session for which another group waits,
// and checks that the other group makes the sampling session.
func TestSamplingSessionOfARevokedGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sessions{endpoint: &waitingEndpoint{endpoint: newEndpoint()}, logger: slog.New(slog.DiscardHandler)}
		s.use("session-1")
		from := weights{path: "tinker://run/sampler_weights/v0"}
		first, revoke := context.WithCancel(t.Context())
		errs := make(chan error, 2)
		for _, ctx := range []context.Context{first, t.Context()} {
			go func() {
				_, _, err := s.sampler(ctx, 7, from)
				errs <- err
			}()
			synctest.Wait()
		}
		revoke()
		if canceled, err := <-errs, <-errs; (canceled == nil) == (err == nil) {
			t.Errorf("the errors are %v and %v, want only an error of the revoked group", canceled, err)
		}
	})
}

// replacedEndpoint replaces the session, as the learner does, while the first sampling session is made in it.
type replacedEndpoint struct {
	*endpoint
	sessions *sessions
}

func (e *replacedEndpoint) CreateSamplingSession(ctx context.Context, session string, number int64, path,
	base string) (string, error) {
	if session == "session-1" {
		e.sessions.use("session-2")
		return "", failureOf(tinker.CategoryNotFound)
	}
	return e.endpoint.CreateSamplingSession(ctx, session, number, path, base)
}

// TestSessionIsReplacedWhileASamplingSessionIsMade checks that a failure in the former session, which the endpoint
// still has, is not taken for a failure of the weights.
func TestSessionIsReplacedWhileASamplingSessionIsMade(t *testing.T) {
	s := &sessions{logger: slog.New(slog.DiscardHandler)}
	api := &replacedEndpoint{endpoint: newEndpoint(), sessions: s}
	api.endpoint.sessions["session-2"] = true
	s.endpoint = api
	s.use("session-1")
	if key, _, err := s.sampler(t.Context(), 7, weights{path: "tinker://run/sampler_weights/v0"}); err != nil ||
		key.session != "session-2" {
		t.Errorf("the sampling session is of %q, %v, want it of session-2", key.session, err)
	}
}
