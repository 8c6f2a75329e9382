// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// seeds are the fields in which runs of the same settings may differ.
var seeds = []string{"spec.algorithm.seed", "spec.model.seed"}

// ranked is a row of compare --sort: a run, or runs that differ only in their seeds.
type ranked struct {
	Runs   []string          `json:"runs"`
	States []string          `json:"states"`
	Spec   map[string]string `json:"differences"`
	// Newest and Best are means over the runs that have the metric; nil if no run has it. Deviation is the standard
	// deviation of Best over these runs; nil if fewer than two have the metric.
	Newest    *float64 `json:"newest,omitempty"`
	Best      *float64 `json:"best,omitempty"`
	Deviation *float64 `json:"bestStandardDeviation,omitempty"`
	// Measured is the number of runs with the metric.
	Measured int `json:"measured"`

	step        string
	newest, top []float64
	// places are the places of the runs in the list that is compared.
	places []int
}

// lowerIsBetter reports whether a smaller value of a metric is better.
func lowerIsBetter(metric string) bool {
	return metric == contract.MetricNLL || metric == contract.MetricHeldOutNLL || metric == contract.MetricLoss
}

// rank returns a row for each run, the best first by a metric. With bySettings, runs that differ only in their seeds
// share a row.
func rank(runs []compared, named string, bySettings bool) (output.Result, error) {
	metric := FullName(named)
	if !slices.ContainsFunc(runs, func(c compared) bool { _, ok := latest(c.history)[metric]; return ok }) {
		for _, c := range runs {
			if len(c.history.Rows) > 0 {
				_, err := resolveMetrics(c.history, []string{named})
				return output.Result{}, err
			}
		}
	}
	rows, paths, err := rankedRows(runs, metric, bySettings)
	if err != nil {
		return output.Result{}, err
	}
	sortRows(rows, metric)
	result := output.Result{Header: []string{"RUN", "STATE", "STEP"}, Value: rows}
	for _, path := range paths {
		result.Header = append(result.Header, strings.ToUpper(path[strings.LastIndex(path, ".")+1:]))
	}
	name := strings.ToUpper(ShortName(metric))
	result.Header = append(result.Header, "BEST "+name, "NEWEST")
	if bySettings {
		result.Header = append(result.Header, "DEVIATION", "RUNS")
	}
	for _, r := range rows {
		cells := []string{strings.Join(r.Runs, " "), strings.Join(r.States, " "), r.step}
		for _, path := range paths {
			cells = append(cells, output.Safe(r.Spec[path]))
		}
		cells = append(cells, output.Number(r.Best), output.Number(r.Newest))
		if bySettings {
			cells = append(cells, output.Number(r.Deviation), fmt.Sprintf("%d of %d", r.Measured, len(r.Runs)))
		}
		result.Rows = append(result.Rows, cells)
	}
	return result, nil
}

// sortRows puts the best row by a metric first.
func sortRows(rows []*ranked, metric string) {
	slices.SortStableFunc(rows, func(a, b *ranked) int { return better(a.Best, b.Best, lowerIsBetter(metric)) })
}

// rankedRows returns the unsorted rows, and the paths in which they differ.
func rankedRows(runs []compared, metric string, bySettings bool) ([]*ranked, []string, error) {
	var specs []map[string]string
	for _, c := range runs {
		spec, err := Flatten(c.run.Spec)
		if err != nil {
			return nil, nil, err
		}
		delete(spec, "spec.suspend")
		for _, path := range seeds {
			if bySettings {
				delete(spec, path)
			}
		}
		specs = append(specs, spec)
	}
	paths := Differences(specs)
	var rows []*ranked
	for i, c := range runs {
		at := slices.IndexFunc(rows, func(r *ranked) bool { return bySettings && maps.Equal(r.Spec, specs[i]) })
		if at < 0 {
			at = len(rows)
			rows = append(rows, &ranked{Spec: specs[i]})
		}
		rows[at].places = append(rows[at].places, i)
		rows[at].add(c, metric)
	}
	for _, r := range rows {
		r.conclude(paths)
	}
	return rows, paths, nil
}

// add adds a run to a row.
func (r *ranked) add(c compared, metric string) {
	r.Runs = append(r.Runs, c.run.Name)
	if state := cmp.Or(c.run.Status.State, unobserved); !slices.Contains(r.States, state) {
		r.States = append(r.States, state)
	}
	r.step = strings.TrimSpace(r.step + " " + status.Steps(&c.run.Status))
	if value, ok := latest(c.history)[metric]; ok {
		r.newest = append(r.newest, value)
		top := value
		for _, row := range c.history.Rows {
			if v, ok := row.Metrics[metric]; ok && better(&v, &top, lowerIsBetter(metric)) < 0 {
				top = v
			}
		}
		r.top = append(r.top, top)
	}
}

// conclude computes the figures of a row, and keeps only the paths of its spec that differ.
func (r *ranked) conclude(paths []string) {
	r.Measured = len(r.top)
	if r.Measured > 0 {
		newest, _ := meanAndDeviation(r.newest)
		best, deviation := meanAndDeviation(r.top)
		r.Newest, r.Best = &newest, &best
		if r.Measured > 1 {
			r.Deviation = &deviation
		}
	}
	maps.DeleteFunc(r.Spec, func(path, _ string) bool { return !slices.Contains(paths, path) })
}

// meanAndDeviation returns the mean of values and their standard deviation, with the divisor n-1.
func meanAndDeviation(values []float64) (mean, deviation float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		deviation += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(deviation / float64(max(1, len(values)-1)))
}

// Better compares values of a metric: the better value comes first, and a missing value last.
func Better(a, b *float64, metric string) int { return better(a, b, lowerIsBetter(metric)) }

// better compares values: the better value comes first, and a missing value last.
func better(a, b *float64, lower bool) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	case lower:
		return cmp.Compare(*a, *b)
	}
	return cmp.Compare(*b, *a)
}

// drawTogether draws a plot for each metric, with the curves of all runs.
func drawTogether(env cli.IO, runs []compared, named []string) error {
	const width, height = 60, 14
	for _, name := range named {
		var curves []output.Series
		for _, c := range runs {
			metrics, err := resolveMetrics(c.history, []string{name})
			if err != nil && len(c.history.Rows) > 0 {
				return fmt.Errorf("run %q: %w", c.run.Name, err)
			}
			for _, metric := range metrics {
				curves = append(curves, output.Series{Name: c.run.Name, Points: points(c.history, metric)})
			}
		}
		if len(curves) == 0 {
			return fmt.Errorf("no run has committed a step yet: there is nothing to draw of %q", name)
		}
		fmt.Fprintln(env.Stdout, output.Curves(ShortName(FullName(name)), curves, width, height))
	}
	return nil
}
