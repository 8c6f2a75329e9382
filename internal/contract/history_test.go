// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRecordMetrics(t *testing.T) {
	given := map[string]float64{
		MetricReward: 1, MetricLoss: math.NaN(), "test/sums/pass@4": 0.5, "env/sums/reward/total": 2, "optim/lr": 1e-5,
		"env/sums/total_turns": 3, "batch/groups_constant": 4, "loss:mean": 5,
	}
	want := map[string]float64{MetricReward: 1, "test/sums/pass@4": 0.5, "env/sums/reward/total": 2, "optim/lr": 1e-5,
		"loss:mean": 5}
	if diff := cmp.Diff(want, RecordMetrics(given)); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	for n := range 100 {
		given[fmt.Sprintf("env/e%d/reward/total", n)] = 1
	}
	got := RecordMetrics(given)
	if _, ok := got[MetricReward]; len(got) != MaxRecordMetrics || !ok {
		t.Errorf("%d metrics are kept: %v", len(got), got)
	}
}
