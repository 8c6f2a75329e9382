// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/future"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/sampling"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/state"
)

// httpError is an error with the status and body of its response.
type httpError struct {
	status     int
	detail     any
	retryAfter time.Duration
}

func (e *httpError) Error() string { return fmt.Sprintf("responding with %d: %v", e.status, e.detail) }

func newHTTPError(status int, format string, args ...any) *httpError {
	return &httpError{status: status, detail: fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) *httpError {
	return newHTTPError(http.StatusBadRequest, format, args...)
}

func notFound(what, id string) *httpError {
	return newHTTPError(http.StatusNotFound, "%s %s not found", what, id)
}

// statusErrors maps the errors of other packages to statuses.
var statusErrors = []struct {
	err    error
	status int
}{
	{checkpoint.ErrNotFound, http.StatusNotFound},
	{checkpoint.ErrExists, http.StatusBadRequest},
	{checkpoint.ErrName, http.StatusBadRequest},
	{future.ErrUnknown, http.StatusNotFound},
	{future.ErrLost, http.StatusGone},
	{future.ErrNotCancelable, http.StatusBadRequest},
	{sampling.ErrBusy, http.StatusTooManyRequests},
	{sampling.ErrClosed, http.StatusServiceUnavailable},
	{state.ErrClosed, http.StatusServiceUnavailable},
}

// asHTTPError converts any error to an httpError.
func asHTTPError(err error) *httpError {
	if r, ok := errors.AsType[*httpError](err); ok {
		return r
	}
	if e, ok := errors.AsType[*state.Error](err); ok {
		return newHTTPError(e.Category.Status(), "%s", e.Message)
	}
	for _, line := range statusErrors {
		if !errors.Is(err, line.err) {
			continue
		}
		r := newHTTPError(line.status, "%s", err)
		if line.status == http.StatusTooManyRequests {
			r.retryAfter = time.Second
		}
		return r
	}
	return newHTTPError(http.StatusInternalServerError, "%s", err)
}
