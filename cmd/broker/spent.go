// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

// spent are metrics of the usage that a broker has counted since midnight. They come from its records: a broker that
// takes over continues them.
type spent struct {
	usd, tokens *prometheus.Desc
	// usage returns the usage of a day.
	usage func(day time.Time) []endpoint.Usage
	now   func() time.Time
}

// spender has the labels of the metrics: who spends, on what.
type spender struct{ namespace, model, user string }

// amount is the usage of a spender.
type amount struct {
	usd    float64
	tokens int64
}

func newSpent(name string, usage func(time.Time) []endpoint.Usage, now func() time.Time) *spent {
	describe := func(metric, help string) *prometheus.Desc {
		return prometheus.NewDesc(metricPrefix+metric, help, []string{"namespace", "model", "user"},
			prometheus.Labels{"endpoint": name})
	}
	return &spent{usage: usage, now: now,
		usd:    describe("day_usd", "US dollars that runs have spent since midnight in UTC, by the prices of the time."),
		tokens: describe("day_tokens", "Tokens of runs that the server bills since midnight in UTC."),
	}
}

// Describe implements prometheus.Collector.
func (s *spent) Describe(descs chan<- *prometheus.Desc) { descs <- s.usd; descs <- s.tokens }

// Collect implements prometheus.Collector. A spender of yesterday has a 0 today, so that no increase is lost.
func (s *spent) Collect(metrics chan<- prometheus.Metric) {
	all, now := map[spender]amount{}, s.now()
	for _, row := range s.usage(now.AddDate(0, 0, -1)) {
		all[spenderOf(row)] = amount{}
	}
	for _, row := range s.usage(now) {
		sum := all[spenderOf(row)]
		sum.usd += row.USD
		sum.tokens += row.Tokens.Prefill + row.Tokens.Sample + row.Tokens.Train + row.Tokens.Forward
		all[spenderOf(row)] = sum
	}
	for of, sum := range all {
		labels := []string{of.namespace, of.model, of.user}
		metrics <- prometheus.MustNewConstMetric(s.usd, prometheus.GaugeValue, sum.usd, labels...)
		metrics <- prometheus.MustNewConstMetric(s.tokens, prometheus.GaugeValue, float64(sum.tokens), labels...)
	}
}

func spenderOf(row endpoint.Usage) spender { return spender{row.Namespace, row.Model, row.User} }
