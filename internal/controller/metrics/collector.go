// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics serves the statuses of TrainingRuns, RewardEnvironments and TinkerEndpoints as metrics for
// Prometheus, to clients that the API server permits to get /metrics. It keeps no state: each scrape reads the current
// statuses.
package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// timeout bounds the reading of one scrape.
const timeout = 5 * time.Second

// Collector reads objects at each scrape. It implements prometheus.Collector.
type Collector struct {
	objects   client.Reader
	endpoints Endpoints
	// elected is closed once this manager is elected: only one of several managers serves the metrics of runs.
	elected <-chan struct{}
}

// NewCollector returns a collector of the objects that a reader lists, which should be a cache, and of endpoints.
func NewCollector(objects client.Reader, endpoints Endpoints, elected <-chan struct{}) *Collector {
	return &Collector{objects: objects, endpoints: endpoints, elected: elected}
}

// Describe sends nothing, because the status of a run decides which metrics it has. The registry therefore does not
// check them.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the metrics of all objects; none while another manager acts.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	select {
	case <-c.elected:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var runs v1alpha1.TrainingRunList
	var environments v1alpha1.RewardEnvironmentList
	for _, list := range []client.ObjectList{&runs, &environments} {
		if err := c.objects.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			out <- failed(err)
			return
		}
	}
	if err := c.endpoints.collect(ctx, out); err != nil {
		out <- failed(err)
		return
	}
	states, queues := map[[2]string]int{}, map[[2]string]int{}
	for i := range runs.Items {
		run := &runs.Items[i]
		states[[2]string{run.Namespace, run.Status.State}]++
		if queue := run.Status.Queue; queue != nil && run.Status.State == v1alpha1.StateQueued {
			queues[[2]string{run.Namespace, queue.Name}]++
		}
		for _, s := range samplesOf(run) {
			out <- s.metric(run.Namespace, run.Name)
		}
	}
	for key, count := range states {
		out <- prometheus.MustNewConstMetric(runsByState, prometheus.GaugeValue, float64(count), key[0], key[1])
	}
	for key, count := range queues {
		out <- prometheus.MustNewConstMetric(queuedRuns, prometheus.GaugeValue, float64(count), key[0], key[1])
	}
	for i := range environments.Items {
		env := &environments.Items[i]
		for _, condition := range env.Status.Conditions {
			out <- prometheus.MustNewConstMetric(environmentCondition, prometheus.GaugeValue, 1,
				env.Namespace, env.Name, condition.Type, string(condition.Status), condition.Reason,
				codeLabel(string(status.CodeOf(env.Status.Codes, condition.Type))))
		}
	}
}

// failed makes a scrape fail with an error.
func failed(err error) prometheus.Metric {
	return prometheus.NewInvalidMetric(prometheus.NewDesc("tinker_operator_collector_error", "Reading objects failed.",
		nil, nil), err)
}
