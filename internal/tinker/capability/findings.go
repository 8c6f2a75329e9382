// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// findings collects a check's findings about the wanted features.
type findings struct {
	features []Feature
	// stop ends the check at an error that further attempts cannot change.
	stop context.CancelCauseFunc

	mu     sync.Mutex
	report Report
}

func (s *findings) wants(f Feature) bool { return slices.Contains(s.features, f) }

// wantsLoss reports whether any feature of a loss is wanted.
func (s *findings) wantsLoss(name tinker.LossName) bool {
	if s.wants(Loss(name)) || s.wants(LossFormula(name)) {
		return true
	}
	return slices.ContainsFunc(losses[name].names(),
		func(setting string) bool { return s.wants(LossSetting(name, setting)) })
}

func (s *findings) wantedAdamSettings() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(adamChanges)), func(name string) bool { return !s.wants(Adam(name)) })
}

// needsNoCheckpoint reports whether all wanted features are checked with new adapters, so that the first model neither
// takes steps nor is saved.
func (s *findings) needsNoCheckpoint() bool {
	return !slices.ContainsFunc(s.features, func(f Feature) bool {
		return f != GradientSum && f != Repeats && f != Protobuf
	})
}

func (s *findings) record(f Feature, support Support, note string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Findings[f] = Finding{Support: support, Note: note}
}

func (s *findings) support(f Feature) Support {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.report.Of(f)
}

// recordError records the finding about a feature that follows from an error. A rejected key ends the check.
func (s *findings) recordError(f Feature, err error) {
	switch {
	case client.CategoryFrom(err) == tinker.CategoryUnauthorized:
		s.stop(err)
	case isUnsupported(err):
		s.record(f, Unsupported, err.Error())
	default:
		s.record(f, Unknown, err.Error())
	}
}

// recordTrialError records the error of a trial. If the server has lost a model, this says nothing about the feature.
func (s *findings) recordTrialError(f Feature, err error) {
	if isRejected(err) {
		s.record(f, Unsupported, err.Error())
		return
	}
	s.record(f, Unknown, err.Error())
}

// maxAttempts limits how often an operation at which the server fails is tried.
const maxAttempts = 3

// retry tries again after errors that may be temporary.
func retry(ctx context.Context, act func(context.Context) error) error {
	var err error
	for range maxAttempts {
		if err = act(ctx); err == nil || isFinal(ctx, err) {
			return err
		}
	}
	return err
}

// retryFor is retry for functions with a result.
func retryFor[T any](ctx context.Context, act func(context.Context) (T, error)) (result T, err error) {
	err = retry(ctx, func(ctx context.Context) (err error) {
		result, err = act(ctx)
		return err
	})
	return result, err
}

// isFinal reports whether another attempt would fail as well.
func isFinal(ctx context.Context, err error) bool {
	return ctx.Err() != nil || isRejected(err) || client.CategoryFrom(err) == tinker.CategoryUnauthorized
}

// isRejected reports whether the server rejected a request as invalid or unsupported.
func isRejected(err error) bool {
	switch client.CategoryFrom(err) {
	case tinker.CategoryUser, tinker.CategoryUnsupported:
		return true
	}
	return false
}

// isOutage reports whether a request failed for a reason that may pass.
func isOutage(err error) bool {
	return client.CategoryFrom(err) != "" && !isUnsupported(err)
}

// isUnsupported reports whether the server does not have an endpoint, or violates the API.
func isUnsupported(err error) bool {
	switch client.CategoryFrom(err) {
	case tinker.CategoryNotFound, tinker.CategoryProtocol:
		return true
	}
	return isRejected(err) || errors.Is(err, client.ErrUnsupported)
}

func await[T any](ctx context.Context, future *client.Future[T], err error) (T, error) {
	if err != nil {
		var zero T
		return zero, err
	}
	return future.Wait(ctx)
}
