// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/environment"
)

const (
	// callTimeout bounds a call of an environment where episodes have no time limit.
	callTimeout = 10 * time.Minute
	// closeTimeout bounds the end of an episode.
	closeTimeout = 30 * time.Second
)

// callEnvironment makes one call of the environment. A call that does not return within the episode's time limit, or
// within callTimeout without one, is a fault of the environment, and so is every other error but the context's.
func callEnvironment[T any](ctx context.Context, e *episode, name string,
	call func(context.Context) (T, error)) (T, error) {
	result, _, err := callWithin(ctx, e, name, cmp.Or(e.timeLimit(), callTimeout), call)
	return result, err
}

// callWithin is callEnvironment with a time limit of the call's own. It also returns how long the call took, without
// its pauses. A call that panics is a fault, and one that ignores its limit or the end of ctx is given up soon after.
func callWithin[T any](ctx context.Context, e *episode, name string, limit time.Duration,
	call func(context.Context) (T, error)) (T, time.Duration, error) {
	overdue := fmt.Errorf("%s of the environment did not return within %v", name, limit)
	timed, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	expire := e.expire
	clock := startClock(limit, func() {
		if expire == nil || !expire() {
			cancel(overdue)
		}
	})
	e.recorder.use(clock)
	result, err := environment.Call(environment.WithRecorder(timed, &e.recorder), e.player.Calls,
		name+" of the environment", call)
	took := clock.stop()
	switch {
	case err == nil:
		return result, took, nil
	case ctx.Err() != nil:
		return result, took, ctx.Err()
	}
	fault := environment.AsFault(err)
	if errors.Is(context.Cause(timed), overdue) {
		return result, took, &environment.Fault{Unavailable: fault.Unavailable, Err: overdue}
	}
	return result, took, fault
}

// callClock measures a call, except for its pauses, and ends it at its limit.
type callClock struct {
	limit   time.Duration
	expire  func()
	mu      sync.Mutex
	timer   *time.Timer
	pauses  int
	spent   time.Duration
	resumed time.Time
	// sampled are the spans in which the policy has worked during pauses. They do not overlap, and are in order.
	sampled []span
}

// span is a time from its begin to its end.
type span struct{ begin, end time.Time }

func startClock(limit time.Duration, expire func()) *callClock {
	c := &callClock{limit: limit, expire: expire}
	c.run()
	return c
}

// run starts the clock. The lock is held, or the clock is not shared yet.
func (c *callClock) run() {
	c.resumed = time.Now()
	c.timer = time.AfterFunc(c.limit-c.spent, c.expire)
}

// halt stops the clock. The lock is held.
func (c *callClock) halt() {
	c.timer.Stop()
	c.spent += time.Since(c.resumed)
}

// pause stops the clock until resume has been called for each pause.
func (c *callClock) pause() (resume func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pauses == 0 {
		c.halt()
	}
	c.pauses++
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.pauses--; c.pauses == 0 {
			c.run()
		}
	})
}

// count adds the time in which the policy has worked on a reply that has just come, and reports whether the limit is
// reached. Time in which several replies were sampled counts once. The clock is paused meanwhile, since a reply may
// wait for others before it is sampled.
func (c *callClock) count(took time.Duration) (isOver bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	own := span{now.Add(-took), now}
	c.spent += took
	for n := len(c.sampled) - 1; n >= 0 && c.sampled[n].end.After(own.begin); n-- {
		before := c.sampled[n]
		if before.begin.Before(own.begin) {
			c.spent -= before.end.Sub(own.begin)
			own.begin = before.begin
		} else {
			c.spent -= before.end.Sub(before.begin)
		}
		c.sampled = c.sampled[:n]
	}
	c.sampled = append(c.sampled, own)
	return c.spent >= c.limit
}

// renew restarts the limit.
func (c *callClock) renew() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spent = 0
}

// stop ends the clock and returns how long it ran.
func (c *callClock) stop() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pauses == 0 {
		c.halt()
	}
	// A pause that outlasts the call resumes nothing.
	c.pauses++
	return c.spent
}

// close ends the episode in its environment, also when ctx has ended.
func (e *episode) close(ctx context.Context) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer stop()
	// An error is in the log.
	_, _ = environment.Call(ctx, e.player.Calls, "Close of the environment", func(ctx context.Context) (struct{}, error) {
		e.running.Close(ctx)
		return struct{}{}, nil
	})
}
