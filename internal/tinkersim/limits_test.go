// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/limit"
)

func TestRequestsAboveTheLimitsAreRefused(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	sample := func(b *backend, seq string) int {
		t.Helper()
		got, err := b.call(http.MethodPost, "/api/v1/asample", `{"base_model":"`+tinkersim.ModelName+`","seq_id":`+seq+
			`,"prompt":{"chunks":[{"type":"encoded_text","tokens":[1]}]},"sampling_params":{"max_tokens":1}}`)
		if err != nil {
			t.Fatal(err)
		}
		if got.status == http.StatusTooManyRequests && got.header.Get("Retry-After") != "1" {
			t.Errorf("Retry-After = %q, want 1", got.header.Get("Retry-After"))
		}
		return got.status
	}
	for name, options := range map[string]tinkersim.Options{
		"requests": {Limits: limit.Limits{RequestsPerSecond: 2}, Clock: func() time.Time { return now }},
		"samples": {Limits: limit.Limits{UnfinishedSamples: 2},
			Faults: []fault.Rule{{Op: "asample", Count: -1, Do: fault.Hold}}},
	} {
		b := start(t, options)
		if got := []int{sample(b, "1"), sample(b, "2"), sample(b, "3")}; got[0] != 200 || got[1] != 200 || got[2] != 429 {
			t.Errorf("%s: the answers are %v, want 200, 200 and 429", name, got)
		}
		if got := b.sim.Refused(); got != 1 {
			t.Errorf("%s: %d requests were refused, want 1", name, got)
		}
	}
}
