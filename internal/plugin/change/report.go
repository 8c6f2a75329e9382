// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/historymap"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/observe"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// runSearch creates the runs of a search that do not exist yet, and stays until the search is at its end.
func (f createFlags) runSearch(ctx context.Context, env cli.IO, cluster *cli.Cluster) error {
	run, environments, err := f.read(env)
	if err != nil {
		return err
	}
	if f.most < 0 {
		return cli.Misused("--max-running is how many runs of the search run at a time: give a number above 0")
	}
	if err := f.search.prepare(run, f.grid); err != nil {
		return err
	}
	trials, err := f.search.trials(run, f.sweep)
	if err != nil {
		return err
	}
	connection, err := cluster.Connect()
	if err != nil {
		return err
	}
	if err := place(trials[0], connection); err != nil {
		return err
	}
	namespace := trials[0].GetNamespace()
	wanted, err := missing(ctx, connection, namespace, trials)
	if err != nil {
		return err
	}
	if len(wanted) > 0 {
		if err := create(ctx, env, connection, environments, wanted, f.dryRun); err != nil {
			return err
		}
	}
	if f.dryRun {
		return nil
	}
	return newSearcher(f.search, env, connection, f.most, trials).run(ctx)
}

// newSearcher returns the searcher of trials that exist.
func newSearcher(s search, env cli.IO, connection *cli.Connection, most int,
	trials []*unstructured.Unstructured) searcher {
	result := searcher{search: s, env: env, kube: connection.Client, namespace: trials[0].GetNamespace(),
		sweep: trials[0].GetLabels()[observe.LabelSweep], most: most, period: 5 * time.Second, told: map[string]bool{}}
	for _, trial := range trials {
		result.names = append(result.names, trial.GetName())
	}
	return result
}

// outcome is the result of a run of a search.
type outcome struct {
	run *v1alpha1.TrainingRun
	// rungs counts the rungs at which the run was among the best; newest is the run's newest value of the metric.
	rungs  int
	at     map[int64]*float64
	newest *float64
}

// report prints a row for each run, the best first, and the spending on all runs.
func (s searcher) report(ctx context.Context) error {
	runs, err := runsOf(ctx, s.kube, s.namespace, s.sweep)
	if err != nil {
		return err
	}
	outcomes := make([]outcome, len(runs))
	for i := range runs {
		if outcomes[i], err = s.outcomeOf(ctx, &runs[i]); err != nil {
			return err
		}
	}
	slices.SortStableFunc(outcomes, func(a, b outcome) int {
		return cmp.Or(b.rungs-a.rungs, observe.Better(a.newest, b.newest, s.search.Metric))
	})
	names, err := axisNames(s.search.Grid)
	if err != nil {
		return err
	}
	result := output.Result{Header: []string{"RUN"}}
	for _, name := range names {
		result.Header = append(result.Header, strings.ToUpper(name))
	}
	result.Header = append(result.Header, "STATE", "STEP")
	for _, rung := range s.search.Rungs {
		result.Header = append(result.Header, fmt.Sprintf("AT %d", rung))
	}
	result.Header = append(result.Header, strings.ToUpper(observe.ShortName(s.search.Metric)), "SAMPLED", "USD")
	for _, o := range outcomes {
		result.Rows = append(result.Rows, s.cells(o, names))
	}
	if err := output.Print(s.env, output.Table, result); err != nil {
		return err
	}
	fmt.Fprintln(s.env.Stdout, spent(runs))
	return nil
}

// outcomeOf returns the result of a run.
func (s searcher) outcomeOf(ctx context.Context, run *v1alpha1.TrainingRun) (outcome, error) {
	at, err := resultsOf(run)
	if err != nil {
		return outcome{}, err
	}
	o := outcome{run: run, at: at, rungs: len(at)}
	if run.Annotations[annotationStopped] != "" {
		o.rungs--
	}
	_, h, err := historymap.Read(ctx, s.kube, run)
	if err != nil {
		return outcome{}, fmt.Errorf("reading what run %q has reached: %w", run.Name, err)
	}
	for _, row := range h.Rows {
		if value, ok := row.Metrics[s.search.Metric]; ok {
			o.newest = &value
		}
	}
	return o, nil
}

// cells returns the row of a run.
func (s searcher) cells(o outcome, names []string) []string {
	cells := []string{o.run.Name}
	for _, name := range names {
		cells = append(cells, output.Safe(o.run.Labels[observe.LabelSweepValue+name]))
	}
	state := o.run.Status.State
	if rung := o.run.Annotations[annotationStopped]; rung != "" {
		state = "Stopped"
	}
	cells = append(cells, state, status.Steps(&o.run.Status))
	for _, rung := range s.search.Rungs {
		cells = append(cells, output.Number(o.at[rung]))
	}
	usage := ptr.Deref(o.run.Status.Usage, v1alpha1.Usage{})
	return append(cells, output.Number(o.newest), output.Count(ptr.Deref(usage.SampledTokens, 0)),
		output.Number(usage.EstimatedUSD))
}

// spent describes the cost of all runs together.
func spent(runs []v1alpha1.TrainingRun) string {
	var prompt, sampled, trained int64
	var usd float64
	priced := 0
	for _, run := range runs {
		usage := ptr.Deref(run.Status.Usage, v1alpha1.Usage{})
		prompt += ptr.Deref(usage.PromptTokens, 0)
		sampled += ptr.Deref(usage.SampledTokens, 0)
		trained += ptr.Deref(usage.TrainedTokens, 0)
		if usage.EstimatedUSD != nil {
			usd += *usage.EstimatedUSD
			priced++
		}
	}
	text := fmt.Sprintf("spent in %s: %s prompt tokens, %s sampled, %s trained", cli.Count(len(runs), "run"),
		output.Count(prompt), output.Count(sampled), output.Count(trained))
	switch {
	case priced == len(runs):
		text += fmt.Sprintf("; %.2f USD", usd)
	case priced > 0:
		text += fmt.Sprintf("; %.2f USD of the %d with known prices", usd, priced)
	}
	return text
}
