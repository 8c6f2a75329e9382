// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// turn is a lock that a context can interrupt.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) tryTake() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}

func (t turn) give() { <-t }

// budget bounds the bytes of results that are fetched at the same time. It admits while anything is left,
// so that one large result always passes.
type budget struct {
	mu    sync.Mutex
	left  int64
	freed chan struct{}
}

func newBudget() *budget { return &budget{freed: make(chan struct{})} }

// add gives bytes back.
func (b *budget) add(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += bytes
	close(b.freed)
	b.freed = make(chan struct{})
}

// reserve waits for its share.
func (b *budget) reserve(ctx context.Context, bytes int64) error {
	for {
		freed, ok := b.tryReserve(bytes)
		if ok {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (b *budget) tryReserve(bytes int64) (<-chan struct{}, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left <= 0 {
		return b.freed, false
	}
	b.left -= bytes
	return nil, true
}

// The delays between repeats.
const (
	minDelay     = 500 * time.Millisecond
	maxDelay     = 30 * time.Second
	paymentDelay = 5 * time.Second
	// maxAsked bounds what a server may ask for.
	maxAsked = time.Minute
)

// backoff doubles from minDelay to its limit.
type backoff struct {
	next  time.Duration
	limit time.Duration
}

func (b *backoff) delay() time.Duration {
	d := max(b.next, minDelay)
	b.next = min(2*d, b.limit)
	return d
}

// delayFor is how long to wait after an error: what the server asked for, or the next of the schedule.
func (b *backoff) delayFor(e *Error) time.Duration {
	if e.RetryAfter > 0 {
		return max(e.RetryAfter, minDelay)
	}
	if e.Category == tinker.CategoryPayment {
		return max(b.delay(), paymentDelay)
	}
	return b.delay()
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
