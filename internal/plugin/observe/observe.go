// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe has the commands that look at runs: top, metrics, why, compare and logs.
package observe

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/history"
	"github.com/tinker-operator/tinker-operator/internal/historymap"
	"github.com/tinker-operator/tinker-operator/internal/nearest"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
)

// ShortName returns the short name of a metric, or its own name if it has no short name.
func ShortName(metric string) string {
	for _, m := range contract.Metrics {
		if m.Name == metric && m.Short != "" {
			return m.Short
		}
	}
	return metric
}

// FullName returns the name of the metric with a short name, or the given name if it is not a short name.
func FullName(name string) string {
	for _, m := range contract.Metrics {
		if m.Short == name && name != "" {
			return m.Name
		}
	}
	return name
}

// shortNames returns the short names of metrics, sorted.
func shortNames() (names []string) {
	for _, m := range contract.Metrics {
		if m.Short != "" {
			names = append(names, m.Short)
		}
	}
	slices.Sort(names)
	return names
}

// readHistory returns the history of a run; it is empty if the run has none yet.
func readHistory(ctx context.Context, c *cli.Connection, run *v1alpha1.TrainingRun) (*history.History, error) {
	_, h, err := historymap.Read(ctx, c, run)
	return h, err
}

// points returns a metric by step.
func points(h *history.History, metric string) []output.Point {
	var all []output.Point
	for _, row := range h.Rows {
		if value, ok := row.Metrics[metric]; ok {
			all = append(all, output.Point{Step: row.Step, Value: value})
		}
	}
	return all
}

// CheckMetric refuses a metric that a history does not have.
func CheckMetric(h *history.History, metric string) error {
	_, err := resolveMetrics(h, []string{metric})
	return err
}

// resolveMetrics returns the full names of metrics that people named, and refuses unknown ones.
func resolveMetrics(h *history.History, named []string) ([]string, error) {
	known := slices.Sorted(maps.Keys(latest(h)))
	var all []string
	for _, name := range named {
		full := FullName(name)
		if slices.Contains(known, full) {
			all = append(all, full)
			continue
		}
		candidates := slices.Concat(known, shortNames())
		if near := nearest.Name(name, candidates); near != "" && near != name {
			return nil, cli.Misused("the history has no metric %q: did you mean %s?", name, near)
		}
		if len(known) == 0 {
			return nil, fmt.Errorf("the history has no metrics yet: the first step is not committed")
		}
		return nil, cli.Misused("the history has no metric %q: it has %s", name, strings.Join(known, ", "))
	}
	return all, nil
}
