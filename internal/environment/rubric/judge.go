// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rubric

import (
	"context"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/chat"
)

// Judge is a model that grades. It is safe for concurrent use.
type Judge interface {
	// Complete returns the model's reply to a conversation. The type of an error decides how it is handled: a
	// *environment.Fault is final for this request, after a *ReplyError another judgement may be asked for, an
	// *UnavailableError concerns all requests, and everything else is an error of this call, such as a *RetryError.
	Complete(ctx context.Context, request Request) (text string, usage Usage, err error)
}

// Request is one call of a judge. If a judge can, it gives the same reply to the same request.
type Request struct {
	Messages []chat.Message
	// Seed is the seed of the reply to be judged.
	Seed uint64
	// Call numbers the calls for one reply. Try is the number of earlier judgements of this call that could not be read;
	// failed calls do not count.
	Call, Try int
}

// Usage counts tokens of a judge.
type Usage struct {
	PromptTokens, SampledTokens int64
}

// RetryError is an error of a call that should be repeated no sooner than After. Other calls should wait as long,
// too.
type RetryError struct {
	After time.Duration
	Err   error
}

// Error implements error.
func (e *RetryError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *RetryError) Unwrap() error { return e.Err }

// ReplyError reports a reply that arrived but cannot be a judgement, such as one that was cut.
type ReplyError struct{ Err error }

// Error implements error.
func (e *ReplyError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ReplyError) Unwrap() error { return e.Err }

// UnavailableError reports that the judge answers no request until something is repaired: a key, a model, an address.
type UnavailableError struct{ Err error }

// Error implements error.
func (e *UnavailableError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }
