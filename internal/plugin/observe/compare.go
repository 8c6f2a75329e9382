// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/history"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// LabelSweep is the label of the runs of a sweep, which has the sweep's name.
const LabelSweep = "rl.tinker-operator.dev/sweep"

// LabelSweepValue is the prefix of the labels that have the values of a run of a sweep. They end in the names of
// fields.
const LabelSweepValue = "sweep.rl.tinker-operator.dev/"

const compareHelp = `kubectl tinker compare shows runs side by side: the fields of the spec in which they
differ, and the figures of their
newest step. best is the greatest value over all steps and the step that had it.

With --sweep, it compares the runs that kubectl tinker create --grid made. With --sort, each run has a row: the fields
in which it differs, and the best and the newest value of the metric, the best run first. --seeds puts runs into
one row that differ in algorithm.seed and model.seed alone: the means over them, and the standard deviation of the best
values. --plot draws all runs in one plot.

With --tasks, it compares two evaluations
task by task, of two runs, or of two steps of one run, as RUN@STEP. p is the probability of the sign test that
tasks are as unevenly better and worse by chance. The evaluations are read from the runs' artifacts.`

const compareExample = `  kubectl tinker compare arithmetic arithmetic-2
  kubectl tinker compare --sweep lr-search
  kubectl tinker compare --sweep lr-search --sort pass@1 --seeds
  kubectl tinker compare arithmetic arithmetic-2 --plot reward
  kubectl tinker compare --tasks arithmetic@10 arithmetic@40`

type compareFlags struct {
	sweep string
	plot  []string
	tasks bool
	// sort is the metric by which runs are ranked, with a row for each run. seeds puts runs that differ only in their
	// seeds into one row.
	sort   string
	seeds  bool
	format *output.Format
}

// NewCompare returns the command that compares runs.
func NewCompare(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	var f compareFlags
	command := &cobra.Command{
		Use: "compare RUN RUN...", Short: "Show runs side by side", Long: compareHelp, Example: compareExample,
		ValidArgsFunction: cluster.CompleteRuns(-1),
		RunE: func(command *cobra.Command, args []string) error {
			return f.run(command.Context(), env, cluster, args)
		},
	}
	f.format = output.Flag(command.Flags())
	command.Flags().StringVar(&f.sweep, "sweep", "", "compare the runs of the sweep `NAME`")
	command.Flags().BoolVar(&f.tasks, "tasks", false, "show the tasks in which two evaluations differ, of RUN or "+
		"RUN@STEP")
	command.Flags().StringSliceVar(&f.plot, "plot", nil, "draw these `METRICS` of all runs")
	command.Flags().StringVar(&f.sort, "sort", "", "print a row for each run, the best first by `METRIC`")
	command.Flags().BoolVar(&f.seeds, "seeds", false, "with --sort, print a row for all runs that differ in seeds alone")
	return command
}

// compared is a run with its history.
type compared struct {
	run     v1alpha1.TrainingRun
	history *history.History
}

func (f compareFlags) run(ctx context.Context, env cli.IO, cluster *cli.Cluster, names []string) error {
	if f.tasks {
		return f.compareTasks(ctx, env, cluster, names)
	}
	switch {
	case f.seeds && f.sort == "":
		return cli.Misused("--seeds shows the mean of a metric over seeds: name the metric with --sort")
	case f.sort != "" && len(f.plot) > 0:
		return cli.Misused("give either --sort or --plot")
	case f.sweep != "" && len(names) > 0:
		return cli.Misused("give either names of runs or --sweep")
	case f.sweep == "" && len(names) < 2:
		return cli.Misused("the names of at least two runs are needed, or --sweep NAME")
	}
	connection, err := cluster.Connect()
	if err != nil {
		return err
	}
	runs, err := f.collect(ctx, connection, names)
	if err != nil {
		return err
	}
	if len(f.plot) > 0 {
		return drawTogether(env, runs, f.plot)
	}
	var result output.Result
	if f.sort != "" {
		result, err = rank(runs, f.sort, f.seeds)
	} else {
		result, err = tabulate(runs)
	}
	if err != nil {
		return err
	}
	return output.Print(env, *f.format, result)
}

func (f compareFlags) collect(ctx context.Context, connection *cli.Connection, names []string) ([]compared, error) {
	var runs []v1alpha1.TrainingRun
	if f.sweep != "" {
		var list v1alpha1.TrainingRunList
		if err := connection.List(ctx, &list, client.InNamespace(connection.Namespace),
			client.MatchingLabels{LabelSweep: f.sweep}); err != nil {
			return nil, fmt.Errorf("listing the runs of sweep %q: %w", f.sweep, err)
		}
		if len(list.Items) == 0 {
			return nil, fmt.Errorf("sweep %q has no runs in namespace %q: list sweeps with: kubectl get trainingruns -L %s",
				f.sweep, connection.Namespace, LabelSweep)
		}
		runs = list.Items
		slices.SortFunc(runs, func(a, b v1alpha1.TrainingRun) int { return strings.Compare(a.Name, b.Name) })
	}
	for _, name := range names {
		run, err := connection.Run(ctx, name)
		if err != nil {
			return nil, err
		}
		runs = append(runs, *run)
	}
	var all []compared
	for _, run := range runs {
		h, err := readHistory(ctx, connection, &run)
		if err != nil {
			return nil, err
		}
		all = append(all, compared{run: run, history: h})
	}
	return all, nil
}

// comparison is the JSON of a run.
type comparison struct {
	Run     string             `json:"run"`
	State   string             `json:"state"`
	Step    int64              `json:"step"`
	Spec    map[string]string  `json:"differences"`
	Metrics map[string]float64 `json:"metrics"`
	Best    map[string]best    `json:"best"`
}

type best struct {
	Step  int64   `json:"step"`
	Value float64 `json:"value"`
}

// tabulate returns a row for each field that differs and for each figure, with a column for each run.
func tabulate(runs []compared) (output.Result, error) {
	result := output.Result{Header: []string{""}}
	var specs []map[string]string
	var all []comparison
	for _, c := range runs {
		spec, err := Flatten(c.run.Spec)
		if err != nil {
			return output.Result{}, err
		}
		specs = append(specs, spec)
		result.Header = append(result.Header, strings.ToUpper(c.run.Name))
		all = append(all, comparison{
			Run: c.run.Name, State: c.run.Status.State, Step: ptr.Deref(c.run.Status.Step, 0), Spec: map[string]string{},
			Metrics: latest(c.history), Best: bests(c.history),
		})
	}
	row := func(name string, cell func(i int) string) {
		cells := []string{name}
		for i := range runs {
			cells = append(cells, cell(i))
		}
		result.Rows = append(result.Rows, cells)
	}
	row("state", func(i int) string { return runs[i].run.Status.State })
	row("step", func(i int) string { return status.Steps(&runs[i].run.Status) })
	for _, path := range Differences(specs) {
		row(path, func(i int) string { return specs[i][path] })
		for i := range all {
			if value, ok := specs[i][path]; ok {
				all[i].Spec[path] = value
			}
		}
	}
	figures(all, row)
	row("sampled tokens", func(i int) string { return tokens(runs[i].run.Status.Usage) })
	row("restarts", func(i int) string { return fmt.Sprint(ptr.Deref(runs[i].run.Status.Restarts, 0)) })
	result.Value = all
	return result, nil
}

// figures adds the rows of the usual metrics that any run has.
func figures(all []comparison, row func(name string, cell func(i int) string)) {
	for _, metric := range slices.Concat(usual, usualOfRows[:2]) {
		if !slices.ContainsFunc(all, func(c comparison) bool { _, ok := c.Metrics[metric]; return ok }) {
			continue
		}
		row(ShortName(metric), func(i int) string { return number(all[i].Metrics, metric) })
		if ShortName(metric) == "reward" || ShortName(metric) == "pass@1" {
			row("best "+ShortName(metric), func(i int) string {
				b, ok := all[i].Best[metric]
				if !ok {
					return ""
				}
				return fmt.Sprintf("%s @%d", output.Number(&b.Value), b.Step)
			})
		}
	}
}

func number(metrics map[string]float64, name string) string {
	value, ok := metrics[name]
	if !ok {
		return ""
	}
	return output.Number(&value)
}

func tokens(usage *v1alpha1.Usage) string {
	if usage == nil {
		return ""
	}
	return output.Count(ptr.Deref(usage.SampledTokens, 0))
}

// latest returns the newest value of each metric.
func latest(h *history.History) map[string]float64 {
	all := map[string]float64{}
	for _, row := range h.Rows {
		maps.Copy(all, row.Metrics)
	}
	return all
}

// bests returns the greatest value of each metric, and the first step that had it.
func bests(h *history.History) map[string]best {
	all := map[string]best{}
	for _, row := range h.Rows {
		for name, value := range row.Metrics {
			if b, ok := all[name]; !ok || value > b.Value {
				all[name] = best{Step: row.Step, Value: value}
			}
		}
	}
	return all
}

// Differences returns the paths at which specs differ.
func Differences(specs []map[string]string) []string {
	paths := map[string]bool{}
	for _, spec := range specs {
		for path, value := range spec {
			for _, other := range specs {
				if text, ok := other[path]; !ok || text != value {
					paths[path] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(paths))
}

// Flatten returns the leaves of a spec by their dotted path. A path has the names of entries of lists, or else their
// indexes.
func Flatten(spec any) (map[string]string, error) {
	data, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encoding spec: %w", err)
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return nil, fmt.Errorf("decoding spec: %w", err)
	}
	out := map[string]string{}
	flattenInto(out, "spec", value)
	return out, nil
}

func flattenInto(out map[string]string, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, child := range v {
			flattenInto(out, path+"."+name, child)
		}
	case []any:
		for i, child := range v {
			key := fmt.Sprint(i)
			if entry, ok := child.(map[string]any); ok && entry["name"] != nil {
				key = fmt.Sprint(entry["name"])
			}
			flattenInto(out, path+"["+key+"]", child)
		}
	default:
		out[path] = fmt.Sprint(v)
	}
}
