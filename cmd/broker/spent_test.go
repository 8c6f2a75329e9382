// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

// newSpentOfTwoDays returns the usage of two days: two teams used a model yesterday, and one of them uses two models
// today.
func newSpentOfTwoDays() *spent {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	days := map[int][]endpoint.Usage{
		27: {{Namespace: "a", Model: "m", User: "alice", USD: 9, Tokens: endpoint.Tokens{Prefill: 9}},
			{Namespace: "b", Model: "m", USD: 7}},
		28: {{Namespace: "a", Run: "1", Model: "m", User: "alice", USD: 1.5, Tokens: endpoint.Tokens{Prefill: 10,
			CachedPrefill: 4, Sample: 5}},
			{Namespace: "a", Run: "2", Model: "m", User: "alice", USD: 0.5, Tokens: endpoint.Tokens{Train: 1, Forward: 2}},
			{Namespace: "a", Run: "2", Model: "n", User: "alice", Tokens: endpoint.Tokens{Sample: 3}}},
	}
	return newSpent("shared", func(day time.Time) []endpoint.Usage { return days[day.Day()] },
		func() time.Time { return now })
}

func TestPrometheusHasTheDollarsOfTeams(t *testing.T) {
	const want = `
# HELP tinker_operator_broker_day_tokens Tokens of runs that the server bills since midnight in UTC.
# TYPE tinker_operator_broker_day_tokens gauge
tinker_operator_broker_day_tokens{endpoint="shared",model="m",namespace="a",user="alice"} 18
tinker_operator_broker_day_tokens{endpoint="shared",model="n",namespace="a",user="alice"} 3
tinker_operator_broker_day_tokens{endpoint="shared",model="m",namespace="b",user=""} 0
# HELP tinker_operator_broker_day_usd US dollars that runs have spent since midnight in UTC, by the prices of the time.
# TYPE tinker_operator_broker_day_usd gauge
tinker_operator_broker_day_usd{endpoint="shared",model="m",namespace="a",user="alice"} 2
tinker_operator_broker_day_usd{endpoint="shared",model="n",namespace="a",user="alice"} 0
tinker_operator_broker_day_usd{endpoint="shared",model="m",namespace="b",user=""} 0
`
	if err := testutil.CollectAndCompare(newSpentOfTwoDays(), strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// TestDashboardNamesMetricsOfBrokers looks for the metrics of brokers in the queries of the dashboard, with the labels
// by which they are summed and selected.
func TestDashboardNamesMetricsOfBrokers(t *testing.T) {
	text, err := os.ReadFile("../../charts/tinker-operator/files/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	m := newMetrics(&process{options: options{endpoint: "shared"}})
	registry := prometheus.NewRegistry()
	registry.MustRegister(newSpentOfTwoDays())
	labels := map[string][]string{}
	for _, gatherer := range []prometheus.Gatherer{registry, m.registry} {
		families, err := gatherer.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			labels[family.GetName()] = []string{}
			for _, pair := range family.GetMetric()[0].GetLabel() {
				labels[family.GetName()] = append(labels[family.GetName()], pair.GetName())
			}
		}
	}
	query := regexp.MustCompile(`^sum by \((\w+)\) \((tinker_operator_broker_\w+)\{(\w+)=~"\$\w+"\}\)$`)
	found := map[string]bool{}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			if !strings.Contains(target.Expr, metricPrefix) {
				continue
			}
			parts := query.FindStringSubmatch(target.Expr)
			if parts == nil {
				t.Errorf("%s is no sum of a metric of brokers", target.Expr)
				continue
			}
			known, ok := labels[parts[2]]
			if !ok || !slices.Contains(known, parts[1]) || !slices.Contains(known, parts[3]) {
				t.Errorf("%s: brokers have no metric %s with the labels %s and %s, but %q", target.Expr, parts[2], parts[1],
					parts[3], known)
			}
			found[parts[1]] = true
		}
	}
	for _, by := range []string{"namespace", "user", "model"} {
		if !found[by] {
			t.Errorf("the dashboard has no dollars by %s", by)
		}
	}
}
