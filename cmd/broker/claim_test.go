// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

func TestBrokersServeWhileTheirReleaseHasTheEndpoint(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	text, failure, took := `{"status":{"namespace":"mine"}}`, error(nil), time.Duration(0)
	c := &claim{endpoint: "shared", namespace: "mine", now: func() time.Time { return now },
		read: func(context.Context) ([]byte, error) {
			now = now.Add(took)
			return []byte(text), failure
		}}
	check := func(what, want string) {
		t.Helper()
		err := c.valid()
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: valid = %v, want %q", what, err, want)
		}
	}
	check("before the first reading", "has not read")
	failure = errors.New("forbidden")
	if c.look(t.Context()) == nil {
		t.Error("a reading that failed has no error")
	}
	check("a reading that failed", "has not read")
	failure, took = nil, 4*time.Second
	_ = c.look(t.Context())
	check("its own release", "")
	failure = errors.New("the API server is away")
	_ = c.look(t.Context())
	now = now.Add(endpoint.ClaimUse - 8*time.Second)
	check("counted from when the last reading began", "")
	now = now.Add(time.Millisecond)
	check("later", "could not read")
	failure, text = nil, `{"status":{"namespace":"other"}}`
	_ = c.look(t.Context())
	check("another release", `"other"`)
	text = `{"status":{}}`
	_ = c.look(t.Context())
	check("no release", `""`)
	text = `{"status":{"namespace":"mine"}}`
	_ = c.look(t.Context())
	check("its own release again", "")
}
