// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// slowHub answers after a while, and pauses before each byte of the body.
type slowHub struct {
	answer, pause time.Duration
	bytes         int
}

// RoundTrip returns a response whose body is slow.
func (h slowHub) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := waitFor(r.Context(), h.answer); err != nil {
		return nil, err
	}
	left := h.bytes
	body := readerFunc(func(b []byte) (int, error) {
		if left == 0 {
			return 0, io.EOF
		}
		left--
		b[0] = 'x'
		return 1, waitFor(r.Context(), h.pause)
	})
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(body), Request: r}, nil
}

func waitFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestStalledDownload(t *testing.T) {
	for name, tc := range map[string]struct {
		hub     slowHub
		stalled bool
		after   time.Duration
	}{
		"A slow download succeeds while bytes arrive": {hub: slowHub{answer: 20 * time.Second, pause: 20 * time.Second, bytes: 10}, after: 220 * time.Second},
		"A server that does not answer is given up":   {hub: slowHub{answer: time.Hour}, stalled: true, after: patience},
		"A body that pauses is given up":              {hub: slowHub{answer: 20 * time.Second, pause: time.Hour, bytes: 1}, stalled: true, after: 50 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fetcher := &Fetcher{Client: &http.Client{Transport: tc.hub}}
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
				defer cancel()
				began := time.Now()
				_, _, err := fetcher.File(ctx, Source{Repository: "org/name"})
				if errors.Is(err, errStalled) != tc.stalled || (err != nil) != tc.stalled || IsFinal(err) {
					t.Errorf("File = %v", err)
				}
				if took := time.Since(began); took != tc.after {
					t.Errorf("it took %v, want %v", took, tc.after)
				}
			})
		})
	}
}
