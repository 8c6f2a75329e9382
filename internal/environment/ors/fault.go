// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package ors

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/httpstatus"
)

// faultOf returns a failure as a fault of the environment, or the context's error if the context has ended for
// another reason than a timeout of this package. A session or a call that took too long is a fault.
func faultOf(ctx context.Context, doing string, err error) error {
	cause := context.Cause(ctx)
	timedOut := errors.Is(cause, errCreateTimeout) || errors.Is(cause, errCallTimeout) || errors.Is(cause, errCheckTimeout)
	switch {
	case ctx.Err() != nil && !timedOut:
		return ctx.Err()
	case timedOut && !errors.Is(err, cause):
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return &environment.Fault{Permanent: isPermanent(err), Err: fmt.Errorf("%s: %w", doing, err)}
}

// unavailable returns the fault of a session that could not be made, before it had a task. If the context has ended
// meanwhile, that is a fault of the server, too: it kept the episode from beginning.
func unavailable(ctx context.Context, err error) error {
	const doing = "creating a session"
	var fault *environment.Fault
	if !errors.As(faultOf(ctx, doing, err), &fault) {
		fault = &environment.Fault{Err: fmt.Errorf("%s: %w", doing, err)}
	}
	fault.Unavailable = !fault.Permanent
	return fault
}

// isPermanent reports whether another session would fail in the same way: the server does not know the environment,
// the split or the task, or cannot read the request.
func isPermanent(err error) bool {
	var status *httpstatus.Error
	if !errors.As(err, &status) {
		return false
	}
	switch status.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// hasStatus reports whether err is an answer with one of the statuses.
func hasStatus(err error, statuses ...int) bool {
	var status *httpstatus.Error
	if !errors.As(err, &status) {
		return false
	}
	return slices.Contains(statuses, status.Status)
}
