// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/wait"
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
	// unconnectedDelay is the longest delay if no connection was made. Such an attempt costs the server nothing, and a
	// broker that takes over from another does so within seconds.
	unconnectedDelay = 3 * time.Second
	// maxRetryAfter limits the delay that a server may ask for.
	maxRetryAfter = time.Minute
)

// backoff doubles its delay from minDelay to its longest. Each delay is longer by up to a quarter.
type backoff struct{ wait.Pauses }

// newBackoff returns a backoff without failures. The function spread returns which part of the quarter a delay has.
func newBackoff(longest time.Duration, spread func() float64) backoff {
	return backoff{wait.Pauses{Backoff: wait.Backoff{First: minDelay, Longest: longest, Jitter: 0.25, Random: spread}}}
}

// delayAfter returns how long to wait after an error: the delay that the server asked for, or the next of the
// backoff.
func (b *backoff) delayAfter(e *Error) time.Duration {
	if e.RetryAfter > 0 {
		return b.Spread(max(e.RetryAfter, minDelay))
	}
	if e.Category == tinker.CategoryPayment {
		b.Failures++
		return b.Spread(max(b.Base(b.Failures), paymentDelay))
	}
	if wait.IsDialError(e) {
		b.Failures++
		return b.Spread(min(b.Base(b.Failures), unconnectedDelay))
	}
	return b.Next()
}
