// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/future"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/sampling"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/state"
)

func TestErrorResponse(t *testing.T) {
	cases := map[string]struct {
		err    error
		status int
		retry  string
	}{
		"a missing checkpoint":        {checkpoint.ErrNotFound, http.StatusNotFound, ""},
		"a bad name":                  {checkpoint.ErrName, http.StatusBadRequest, ""},
		"a future of another process": {future.ErrUnknown, http.StatusNotFound, ""},
		"a future that is lost":       {future.ErrLost, http.StatusGone, ""},
		"too many waiting samples":    {sampling.ErrBusy, http.StatusTooManyRequests, "1"},
		"a closed engine":             {sampling.ErrClosed, http.StatusServiceUnavailable, ""},
		"a closed server":             {state.ErrClosed, http.StatusServiceUnavailable, ""},
		"any other error":             {errors.New("disk full"), http.StatusInternalServerError, ""},
		"an httpError":                {badRequest("no"), http.StatusBadRequest, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := errorResponse(fmt.Errorf("doing it: %w", tc.err))
			if got.status != tc.status || got.header.Get("Retry-After") != tc.retry || len(got.body) == 0 {
				t.Errorf("answer %d %v %s", got.status, got.header, got.body)
			}
		})
	}
}
