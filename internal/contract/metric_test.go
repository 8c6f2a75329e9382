// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMetricsArePlacedOnce makes sure that a metric, a gauge and a short name stand on one line, and that a gauge has a
// help and a value in the status, from which the manager reads it.
func TestMetricsArePlacedOnce(t *testing.T) {
	used := map[string]bool{}
	for _, m := range Metrics {
		for _, name := range []string{"metric " + m.Name, "gauge " + m.Gauge, "short " + m.Short} {
			if name != "gauge " && name != "short " && used[name] {
				t.Errorf("%s stands on two lines", name)
			}
			used[name] = true
		}
		if m.Gauge != "" && (m.Help == "" || !m.Status) {
			t.Errorf("the gauge %s has help %q, in the status: %v", m.Gauge, m.Help, m.Status)
		}
	}
}

// TestFiltersOfMetrics makes sure that the status and the history have the metrics that metric.go promises.
func TestFiltersOfMetrics(t *testing.T) {
	row := map[string]float64{MetricReward: 1, MetricPassAt1: 2, "optim/lr": 3, "test/math/pass@4": 4, "loss:kl": 5,
		MetricOptionsIgnored: 9, PrefixIgnored + "tool_choice": 10, "env/math/ignored_tool_choice": 11,
		"env/math/reward/total": 6, "env/math/other": 7, "time/total": math.NaN(), "env/all/correct": 8}
	names := func(metrics map[string]float64) []string { return slices.Sorted(maps.Keys(metrics)) }
	if diff := cmp.Diff([]string{MetricReward, MetricPassAt1, MetricStepSeconds}, names(StatusMetrics(row))); diff != "" {
		t.Errorf("the status has (-want +got):\n%s", diff)
	}
	want := []string{"env/all/correct", PrefixIgnored + "tool_choice", MetricOptionsIgnored, MetricReward,
		"env/math/reward/total", "loss:kl", "optim/lr", "test/math/pass@4", MetricPassAt1}
	if diff := cmp.Diff(want, names(RecordMetrics(row))); diff != "" {
		t.Errorf("the history has (-want +got):\n%s", diff)
	}
	main := names(MainMetrics(map[string]float64{MetricReward: 1, "optim/lr": 3}, 1))
	if diff := cmp.Diff([]string{MetricReward}, main); diff != "" {
		t.Errorf("with room for 1 there are (-want +got):\n%s", diff)
	}
}
