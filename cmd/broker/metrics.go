// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tinker-operator/tinker-operator/internal/broker"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

const metricPrefix = "tinker_operator_broker_"

// metrics are the Prometheus metrics of a broker.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	// billed is the Tinker endpoint's bill for the last hour, and billDifference how much more that is than the broker
	// counted. They have no value if the endpoint has no bills.
	billed, billDifference *prometheus.GaugeVec
}

// newMetrics returns metrics with gauges of the process.
func newMetrics(p *process) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricPrefix + "requests_total",
			Help: "Answers to runs, by operation, status, and the code of answers that the broker made itself."},
			[]string{"operation", "status", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: metricPrefix + "request_seconds",
			Help:    "How long requests took that were passed on, by operation. A poll waits for its result.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}}, []string{"operation"}),
	}
	bill := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: metricPrefix + name, Help: help,
			ConstLabels: prometheus.Labels{"endpoint": p.endpoint}}, []string{"kind"})
	}
	m.billed = bill("billed_tokens", "Tokens that the Tinker endpoint bills for the last full hour, by kind.")
	m.billDifference = bill("bill_difference_tokens",
		"How many tokens more the Tinker endpoint bills for the last full hour than the broker counted, by kind.")
	m.registry.MustRegister(m.requests, m.seconds, m.billed, m.billDifference)
	m.registry.MustRegister(newSpent(p.endpoint, func(day time.Time) []endpoint.Usage {
		if b := p.current.Load(); b != nil {
			return b.Usage(day)
		}
		return nil
	}, time.Now))
	for _, gauge := range []struct {
		name, help string
		value      func() float64
	}{
		{"serving", "1 for the broker that serves, and 0 for a standby.", func() float64 { return one(p.isReady()) }},
		{"requests_in_progress", "Requests that have no answer yet, polls among them.",
			func() float64 { return float64(p.inProgress.Load()) }},
		{"key_refused", "1 while the Tinker endpoint refuses the API key.", of(p, func(b *broker.Broker) float64 {
			return one(b.Report().KeyRefused != "")
		})},
		{"unreachable", "1 while the Tinker endpoint does not answer.", of(p, func(b *broker.Broker) float64 {
			return one(b.Report().Unreachable != "")
		})},
		{"runs", "Runs whose token the broker accepts.",
			of(p, func(b *broker.Broker) float64 { return float64(b.Stats().Runs) })},
		{"models", "Models whose owner is recorded.", of(p, func(b *broker.Broker) float64 {
			return float64(b.Stats().Models)
		})},
		{"futures", "Results whose owner is recorded and that are not forgotten yet.",
			of(p, func(b *broker.Broker) float64 { return float64(b.Stats().Futures) })},
		{"body_bytes", "Memory that is reserved for the bodies of requests.", of(p, func(b *broker.Broker) float64 {
			return float64(b.Stats().BodyBytes)
		})},
	} {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: metricPrefix + gauge.name,
			Help: gauge.help}, gauge.value))
	}
	return m
}

// compare sets the gauges of a bill.
func (m *metrics) compare(bill broker.Bill) {
	for kind, of := range map[string]func(endpoint.Tokens) int64{
		"prefill": func(t endpoint.Tokens) int64 { return t.Prefill },
		"sample":  func(t endpoint.Tokens) int64 { return t.Sample },
		"train":   func(t endpoint.Tokens) int64 { return t.Train },
	} {
		m.billed.WithLabelValues(kind).Set(float64(of(bill.Billed)))
		m.billDifference.WithLabelValues(kind).Set(float64(of(bill.Billed) - of(bill.Counted)))
	}
}

// observe counts an answer.
func (m *metrics) observe(answer broker.Answer) {
	m.requests.WithLabelValues(answer.Op, strconv.Itoa(answer.Status), string(answer.Code)).Inc()
	if answer.Op != "" && answer.Code == "" {
		m.seconds.WithLabelValues(answer.Op).Observe(answer.Took.Seconds())
	}
}

// of returns a function that returns a value of the open broker, or 0 if no broker is open.
func of(p *process, value func(*broker.Broker) float64) func() float64 {
	return func() float64 {
		if b := p.current.Load(); b != nil {
			return value(b)
		}
		return 0
	}
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
