// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"maps"
	"slices"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/history"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
)

// Summary is a run at a glance.
type Summary = summary

// Summarize returns the summary of a run.
func Summarize(run *v1alpha1.TrainingRun, now time.Time) Summary { return summarize(run, now) }

// Progress returns the numbers of committed steps and of all steps; empty if not known.
func (s summary) Progress() string { return s.progress() }

// Share returns the share of the run that is done, from 0 to 1.
func (s summary) Share() float64 { return s.share() }

// ETA returns the time for the rest of the run; empty if not known.
func (s summary) ETA() string { return s.eta() }

// Explanation explains the state of a run or an environment.
type Explanation = explanation

// ExplainRun says why a run is in its state, by its pods and events as far as they may be read.
func ExplainRun(ctx context.Context, c *cli.Connection, run *v1alpha1.TrainingRun, now time.Time) Explanation {
	return ofRun(c, run).find(ctx, c, now)
}

// ExplainEnvironment says whether an environment is ready, or why not.
func ExplainEnvironment(ctx context.Context, c *cli.Connection, environment *v1alpha1.RewardEnvironment,
	now time.Time) Explanation {
	return ofEnvironment(environment).find(ctx, c, now)
}

// IsWrong reports whether a condition has another status than in a run that makes progress.
func IsWrong(c metav1.Condition) bool { return isWrong(c) }

// LastSeen returns when an event was last observed.
func LastSeen(e eventsv1.Event) time.Time { return lastSeen(e) }

// Usual returns the metrics of a history that people look at first.
func Usual(h *history.History) []string { return usualIn(h) }

// Newest returns the newest value of each metric of a history.
func Newest(h *history.History) map[string]float64 { return latest(h) }

// Row is a row of a comparison by a metric: a run, or runs that differ only in their seeds.
type Row = ranked

// Comparison has the fields in which runs differ, and the rows of the runs, the best first by a metric.
type Comparison struct {
	Paths []string
	Rows  []*Row
}

// Compare compares runs by a metric. histories has the history of each run. With bySettings, runs that differ only in
// their seeds share a row.
func Compare(runs []v1alpha1.TrainingRun, histories []*history.History, metric string,
	bySettings bool) (Comparison, error) {
	all := make([]compared, len(runs))
	for i := range runs {
		all[i] = compared{run: runs[i], history: histories[i]}
	}
	rows, paths, err := rankedRows(all, metric, bySettings)
	if err != nil {
		return Comparison{}, err
	}
	sortRows(rows, metric)
	return Comparison{Paths: paths, Rows: rows}, nil
}

// Step returns the numbers of committed steps and of all steps of the row's runs.
func (r *ranked) Step() string { return r.step }

// Places returns the places of the row's runs in the list that is compared.
func (r *ranked) Places() []int { return r.places }

// Metrics returns the names of all metrics of histories, sorted.
func Metrics(histories ...*history.History) []string {
	names := map[string]bool{}
	for _, h := range histories {
		for _, row := range h.Rows {
			for name := range row.Metrics {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}
