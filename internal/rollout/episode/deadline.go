// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
func callEnvironment[T any](ctx context.Context, e *episode, name string, call func(context.Context) (T, error)) (T, error) {
	timeout := cmp.Or(e.timeLimit(), callTimeout)
	overdue := fmt.Errorf("%s of the environment did not return within %v", name, timeout)
	timed, stop := context.WithTimeoutCause(ctx, timeout, overdue)
	defer stop()
	result, err := call(timed)
	switch {
	case err == nil:
		return result, nil
	case ctx.Err() != nil:
		return result, ctx.Err()
	case errors.Is(context.Cause(timed), overdue):
		return result, &environment.Fault{Err: overdue}
	default:
		return result, environment.AsFault(err)
	}
}

// close ends the episode in its environment, also when ctx has ended.
func (e *episode) close(ctx context.Context) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer stop()
	e.running.Close(ctx)
}
