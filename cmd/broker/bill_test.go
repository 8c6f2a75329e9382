// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tinker-operator/tinker-operator/internal/broker"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

// TestMetricsOfABill checks that the metrics have no values before the first bill: an endpoint may have no bills.
func TestMetricsOfABill(t *testing.T) {
	m := newMetrics(&process{options: options{endpoint: "prod"}})
	if n := testutil.CollectAndCount(m.billed) + testutil.CollectAndCount(m.billDifference); n != 0 {
		t.Errorf("without a bill there are %d values", n)
	}
	m.compare(broker.Bill{Billed: endpoint.Tokens{Sample: 10, Train: 5}, Counted: endpoint.Tokens{Sample: 12, Train: 5}})
	for kind, want := range map[string]float64{"prefill": 0, "sample": -2, "train": 0} {
		if got := testutil.ToFloat64(m.billDifference.WithLabelValues(kind)); got != want {
			t.Errorf("the difference of %s is %v, want %v", kind, got, want)
		}
	}
	if got := testutil.ToFloat64(m.billed.WithLabelValues("sample")); got != 10 {
		t.Errorf("billed are %v sampled tokens, want 10", got)
	}
}
