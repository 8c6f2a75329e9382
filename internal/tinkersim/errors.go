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

// refusal is an error that a request is answered with.
type refusal struct {
	status     int
	detail     any
	retryAfter time.Duration
}

func (e *refusal) Error() string { return fmt.Sprintf("answering with %d: %v", e.status, e.detail) }

func refuse(status int, format string, args ...any) *refusal {
	return &refusal{status: status, detail: fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) *refusal {
	return refuse(http.StatusBadRequest, format, args...)
}

func notFound(what, id string) *refusal {
	return refuse(http.StatusNotFound, "%s %s not found", what, id)
}

// statusErrors says which status goes with the errors of the packages below.
var statusErrors = []struct {
	err    error
	status int
}{
	{checkpoint.ErrNotFound, http.StatusNotFound},
	{checkpoint.ErrExists, http.StatusBadRequest},
	{checkpoint.ErrName, http.StatusBadRequest},
	{future.ErrUnknown, http.StatusNotFound},
	{future.ErrLost, http.StatusGone},
	{sampling.ErrBusy, http.StatusTooManyRequests},
	{sampling.ErrClosed, http.StatusServiceUnavailable},
	{state.ErrEnded, http.StatusServiceUnavailable},
}

// asRefusal turns any error into the answer for it.
func asRefusal(err error) *refusal {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	if e, ok := errors.AsType[*state.Error](err); ok {
		return refuse(e.Category.Status(), "%s", e.Message)
	}
	for _, line := range statusErrors {
		if !errors.Is(err, line.err) {
			continue
		}
		r := refuse(line.status, "%s", err)
		if line.status == http.StatusTooManyRequests {
			r.retryAfter = time.Second
		}
		return r
	}
	return refuse(http.StatusInternalServerError, "%s", err)
}
