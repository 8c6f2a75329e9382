// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// returnGrace is how long a call may take to return once its context has ended.
	returnGrace = 5 * time.Second
	// lateCloseTimeout bounds the closing of an episode that began after its start was given up.
	lateCloseTimeout = 30 * time.Second
)

// PanicError is a panic in a call of an environment: in a grader, a tool, a reader of data, or a library that reads
// texts of a policy or a data set.
type PanicError struct {
	// Doing names the call.
	Doing string
	Value any
}

// Error implements error.
func (e *PanicError) Error() string { return fmt.Sprintf("%s panicked: %v", e.Doing, e.Value) }

// OverdueError reports a call of an environment that did not return after its context had ended. The caller has
// stopped waiting for it.
type OverdueError struct {
	// Doing names the call.
	Doing string
	// Cause is why the context ended.
	Cause error
}

// Error implements error.
func (e *OverdueError) Error() string {
	return fmt.Sprintf("%s was given up, and has not returned: %v", e.Doing, e.Cause)
}

// Unwrap returns why the context ended.
func (e *OverdueError) Unwrap() error { return e.Cause }

// Call makes a call of an environment, in a goroutine of its own. If the call panics, the error is a *Fault caused by
// a *PanicError. If the call ignores the end of its context, Call gives it up: the error is a *Fault caused by an
// *OverdueError. If the call returns an episode after that, the episode is closed.
func Call[T any](ctx context.Context, calls *Calls, doing string, call func(context.Context) (T, error)) (T, error) {
	type answer struct {
		result T
		err    error
	}
	answers := make(chan answer, 1)
	var decided atomic.Bool // set by the first of two events: the call returns, or is given up
	go func() {
		result, err := Guard(calls.Log(), doing, func() (T, error) { return call(ctx) })
		if decided.CompareAndSwap(false, true) {
			answers <- answer{result, err}
			return
		}
		calls.end(doing)
		if running, ok := any(result).(Episode); ok && err == nil {
			closeLate(ctx, calls, running)
		}
	}()
	select {
	case a := <-answers:
		return a.result, a.err
	case <-ctx.Done():
	}
	grace := time.NewTimer(calls.grace())
	defer grace.Stop()
	select {
	case a := <-answers:
		return a.result, a.err
	case <-grace.C:
	}
	calls.begin(doing)
	if !decided.CompareAndSwap(false, true) {
		calls.end(doing)
		a := <-answers
		return a.result, a.err
	}
	calls.Log().Error("environment does not return", "doing", doing, "given_up", calls.count())
	var none T
	return none, &Fault{Err: &OverdueError{Doing: doing, Cause: context.Cause(ctx)}}
}

// closeLate closes an episode whose start was given up.
func closeLate(ctx context.Context, calls *Calls, running Episode) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), lateCloseTimeout)
	defer stop()
	_, _ = Guard(calls.Log(), "closing an episode", func() (struct{}, error) {
		running.Close(ctx)
		return struct{}{}, nil
	})
}

// Guard makes a call in this goroutine. If the call panics, the error is a *Fault caused by a *PanicError, and the
// stack is logged. A nil logger means slog.Default.
func Guard[T any](logger *slog.Logger, doing string, call func() (T, error)) (result T, err error) {
	defer func() {
		if value := recover(); value != nil {
			if logger == nil {
				logger = slog.Default()
			}
			logger.Error("environment panicked", "doing", doing, "panic", fmt.Sprint(value), "stack", string(debug.Stack()))
			err = &Fault{Err: &PanicError{Doing: doing, Value: value}}
		}
	}()
	return call()
}

// Calls counts the calls of environments that were given up. It is safe for concurrent use. A nil *Calls is ready, and
// counts nothing.
type Calls struct {
	// Logger logs the stacks of panics and the calls that were given up. Defaults to slog.Default.
	Logger *slog.Logger
	// Grace is how long a call may take to return once its context has ended. Defaults to 5 s.
	Grace time.Duration

	mu sync.Mutex
	// givenUp counts the calls that were given up and have not returned, by the name of the call.
	givenUp map[string]int
}

// Problem describes the calls that were given up and have not returned, for people. It is empty if there are none.
func (c *Calls) Problem() string {
	if c == nil {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	total, example := 0, ""
	for doing, n := range c.givenUp {
		total += n
		if example == "" || doing < example {
			example = doing
		}
	}
	if total == 0 {
		return ""
	}
	return fmt.Sprintf("calls of environments that were given up and have not returned: %d, among them %s", total, example)
}

func (c *Calls) begin(doing string) { c.add(doing, 1) }

func (c *Calls) end(doing string) { c.add(doing, -1) }

func (c *Calls) add(doing string, n int) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.givenUp == nil {
		c.givenUp = map[string]int{}
	}
	if c.givenUp[doing] += n; c.givenUp[doing] == 0 {
		delete(c.givenUp, doing)
	}
}

// count returns how many calls were given up and have not returned.
func (c *Calls) count() int {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	total := 0
	for _, n := range c.givenUp {
		total += n
	}
	return total
}

// Log returns the logger of the calls.
func (c *Calls) Log() *slog.Logger {
	if c == nil || c.Logger == nil {
		return slog.Default()
	}
	return c.Logger
}

func (c *Calls) grace() time.Duration {
	if c == nil || c.Grace == 0 {
		return returnGrace
	}
	return c.Grace
}
