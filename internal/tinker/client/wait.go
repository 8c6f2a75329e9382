// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// newLock returns a lock that a context can interrupt.
func newLock() *semaphore.Weighted { return semaphore.NewWeighted(1) }

// acquire takes a lock. Its error is the cause of ctx's end.
func acquire(ctx context.Context, lock *semaphore.Weighted) error {
	if lock.Acquire(ctx, 1) != nil {
		return context.Cause(ctx)
	}
	return nil
}

// The delays between attempts.
const (
	minDelay     = 500 * time.Millisecond
	maxDelay     = 30 * time.Second
	paymentDelay = 5 * time.Second
	// maxRetryAfter limits the delay that a server may ask for.
	maxRetryAfter = time.Minute
)

// backoff doubles its delay from minDelay to its limit. Each delay is longer by up to a quarter, as spread says.
type backoff struct {
	next   time.Duration
	limit  time.Duration
	spread func() float64
}

func (b *backoff) delay() time.Duration { return b.lengthen(b.step()) }

func (b *backoff) step() time.Duration {
	d := max(b.next, minDelay)
	b.next = min(2*d, b.limit)
	return d
}

func (b *backoff) lengthen(d time.Duration) time.Duration {
	return d + time.Duration(float64(d)/4*b.spread())
}

// delayAfter returns how long to wait after an error: the delay that the server asked for, or the next of the
// backoff.
func (b *backoff) delayAfter(e *Error) time.Duration {
	if e.RetryAfter > 0 {
		return b.lengthen(max(e.RetryAfter, minDelay))
	}
	if e.Category == tinker.CategoryPayment {
		return b.lengthen(max(b.step(), paymentDelay))
	}
	return b.delay()
}
