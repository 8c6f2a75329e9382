// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package ors

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/environment"
)

// hanging is a server that accepts all requests and answers those to some paths. It does not answer a deletion.
type hanging struct{ answers []string }

// RoundTrip implements http.RoundTripper.
func (h hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	if !slices.Contains(h.answers, r.URL.Path) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	body := map[string]string{"/list_environments": `["e"]`, "/create_session": `{"sid": "s1"}`,
		"/create": "{}"}[r.URL.Path]
	header := http.Header{"Content-Type": {"application/json"}}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(strings.NewReader(body)),
		Request: r}, nil
}

// TestServersThatDoNotAnswer checks that each call ends soon after its limit at a server that accepts requests and does
// not answer them, and that it leaves no session open.
func TestServersThatDoNotAnswer(t *testing.T) {
	begins := []string{"/list_environments", "/create_session"}
	cases := map[string]struct {
		answers    []string
		deployment string
		call       func(ctx context.Context, b *Backend) error
	}{
		"Open":                         {answers: begins, call: open},
		"Open of a session":            {answers: begins[:1], call: open},
		"Open with a list":             {call: open},
		"Splits":                       {answers: begins, call: splits},
		"Splits of the hosted service": {answers: begins, deployment: "acme/math", call: splits},
		"Check": {answers: begins,
			call: func(ctx context.Context, b *Backend) error { return b.Check(ctx) }},
		"Messages and Close": {answers: append(begins, "/create"), call: func(ctx context.Context, b *Backend) error {
			session, err := b.Open(ctx, environment.Task{Split: "train"})
			if err != nil {
				return err
			}
			_, err = session.Messages(ctx)
			closing, stop := context.WithTimeout(ctx, 30*time.Second)
			defer stop()
			session.Close(closing)
			return err
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, err := New(Options{
					BaseURL: "http://environment.test", HTTP: &http.Client{Transport: hanging{tc.answers}}, Deployment: tc.deployment,
					CreateTimeout: time.Minute, CallTimeout: time.Minute, MaxSessions: 1,
				})
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() { ended <- tc.call(t.Context(), b) }()
				select {
				case err := <-ended:
					if err == nil && name != "Check" {
						t.Errorf("%s: error is nil, want one", name)
					}
				case <-time.After(2 * time.Minute):
					t.Error("the call has not ended after two minutes")
				}
				if n := len(b.sessions); n != 0 {
					t.Errorf("%d sessions are open, want 0", n)
				}
			})
		})
	}
}

func open(ctx context.Context, b *Backend) error {
	_, err := b.Open(ctx, environment.Task{Split: "train"})
	return err
}

func splits(ctx context.Context, b *Backend) error {
	_, err := b.Splits(ctx)
	return err
}
