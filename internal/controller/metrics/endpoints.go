// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	rules "github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// These are the metrics of TinkerEndpoints. The usage of a budget is the usage in its present period.
var (
	endpointCondition = describe("endpoint_condition", "1 for each condition of a TinkerEndpoint as it stands.",
		"endpoint", "type", "status", "reason", "code")
	endpointRuns = describe("endpoint_runs", "Runs in progress that use the TinkerEndpoint.", "endpoint")
	budgetUSD    = describe("endpoint_budget_usd", "Limit of a budget of a TinkerEndpoint, in US dollars.", "endpoint",
		"budget", "period")
	budgetUsedUSD = describe("endpoint_budget_used_usd",
		"US dollars that the runs of a budget have used in its present period.", "endpoint", "budget", "period")
	budgetTokens = describe("endpoint_budget_tokens", "Limit of a budget of a TinkerEndpoint, in tokens.", "endpoint",
		"budget", "period")
	budgetUsedTokens = describe("endpoint_budget_used_tokens",
		"Tokens that the runs of a budget have used in its present period.", "endpoint", "budget", "period")
)

// Endpoints are the TinkerEndpoints that a manager serves.
type Endpoints struct {
	// Reader reads the endpoints; nil if the manager serves none.
	Reader client.Reader
	// Names are the endpoints that the manager may get; empty if it may list all.
	Names []string
	// Namespace is the namespace of the manager. The manager of another namespace has the metrics of the endpoints that it
	// serves.
	Namespace string
	// Now is the clock that decides the present period of a budget.
	Now func() time.Time
}

// list reads the endpoints.
func (e Endpoints) list(ctx context.Context) ([]v1alpha1.TinkerEndpoint, error) {
	if e.Reader == nil {
		return nil, nil
	}
	var all v1alpha1.TinkerEndpointList
	if len(e.Names) == 0 {
		if err := e.Reader.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing TinkerEndpoints: %w", err)
		}
		return all.Items, nil
	}
	for _, name := range e.Names {
		var found v1alpha1.TinkerEndpoint
		err := e.Reader.Get(ctx, client.ObjectKey{Name: name}, &found)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading TinkerEndpoint %s: %w", name, err)
		}
		if err == nil {
			all.Items = append(all.Items, found)
		}
	}
	return all.Items, nil
}

// collect sends the metrics of the endpoints that are served from the manager's namespace.
func (e Endpoints) collect(ctx context.Context, out chan<- prometheus.Metric) error {
	all, err := e.list(ctx)
	if err != nil {
		return err
	}
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	for i := range all {
		of := &all[i]
		if of.Status.Namespace != e.Namespace {
			continue
		}
		for _, condition := range of.Status.Conditions {
			gauge(endpointCondition, 1, of.Name, condition.Type, string(condition.Status), condition.Reason,
				codeLabel(string(status.CodeOf(of.Status.Codes, condition.Type))))
		}
		if of.Status.Runs != nil {
			gauge(endpointRuns, float64(*of.Status.Runs), of.Name)
		}
		for _, budget := range of.Spec.Budgets {
			tokens, usd := rules.UsageOf(of, budget, e.Now())
			labels := []string{of.Name, budget.Name, string(budget.Period)}
			if budget.USD != nil {
				gauge(budgetUSD, *budget.USD, labels...)
			}
			if budget.Tokens != nil {
				gauge(budgetTokens, float64(*budget.Tokens), labels...)
			}
			gauge(budgetUsedUSD, usd, labels...)
			gauge(budgetUsedTokens, float64(tokens), labels...)
		}
	}
	return nil
}
