// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package stall

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// slowServer answers after a while, and pauses before each byte of the body.
type slowServer struct {
	answer, pause time.Duration
	bytes         int
}

// RoundTrip returns a response whose body is slow.
func (s slowServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := waitFor(r.Context(), s.answer); err != nil {
		return nil, err
	}
	left := s.bytes
	body := readerFunc(func(b []byte) (int, error) {
		if left == 0 {
			return 0, io.EOF
		}
		left--
		b[0] = 'x'
		return 1, waitFor(r.Context(), s.pause)
	})
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(body), Request: r}, nil
}

type readerFunc func([]byte) (int, error)

// Read calls the function.
func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

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

// download reads an answer whole.
func download(ctx context.Context, server http.RoundTripper) ([]byte, error) {
	ctx, watch := New(ctx)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://server/", http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := (&http.Client{Transport: server}).Do(request)
	if err != nil {
		watch.End()
		return nil, watch.Cause(err)
	}
	defer response.Body.Close()
	body := watch.Body(response.Body)
	defer body.Close()
	return io.ReadAll(body)
}

func TestStalledDownload(t *testing.T) {
	for name, tc := range map[string]struct {
		server  slowServer
		stalled bool
		after   time.Duration
	}{
		"a slow download succeeds while bytes arrive": {server: slowServer{answer: 20 * time.Second,
			pause: 20 * time.Second, bytes: 10}, after: 220 * time.Second},
		"a download from a server that does not answer is stopped": {server: slowServer{answer: time.Hour}, stalled: true,
			after: Limit},
		"a download that pauses is stopped": {server: slowServer{answer: 20 * time.Second, pause: time.Hour, bytes: 1},
			stalled: true, after: 50 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
				defer cancel()
				began := time.Now()
				data, err := download(ctx, tc.server)
				if errors.Is(err, Err) != tc.stalled || (err != nil) != tc.stalled || err == nil && len(data) != tc.server.bytes {
					t.Errorf("download = %d bytes, %v", len(data), err)
				}
				if took := time.Since(began); took != tc.after {
					t.Errorf("it took %v, want %v", took, tc.after)
				}
			})
		})
	}
}

func TestCanceledDownloadIsNotStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := download(ctx, slowServer{answer: time.Hour}); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err,
			Err) {
			t.Errorf("download = %v, want the context's error", err)
		}
	})
}
