// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/history"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/plugin/transcripts"
)

const metricsHelp = `kubectl tinker metrics prints the main figures of each committed step of a run, or draws them.

The figures come from the history that the operator keeps for each run, with or without artifacts: up to 512 steps,
evenly spaced in longer runs. Figures have the names of metrics.jsonl; short names are reward, pass@1, loss, kl,
entropy, seconds, tok/s, lr, grad and correct; docs/metrics.md describes all. With -o json, all figures of the
history are printed.

--all shows every metric of metrics.jsonl and evaluations.jsonl with its newest value, its unit and its meaning. A run
with spec.artifacts has them in its artifacts, which a pod reads as for kubectl tinker transcripts; of a run without,
the history is all that there is. --select, --plot and -o json then take any metric of the newest --last lines.`

const metricsExample = `  kubectl tinker metrics arithmetic
  kubectl tinker metrics arithmetic --plot reward,pass@1
  kubectl tinker metrics arithmetic --all
  kubectl tinker metrics arithmetic --all --plot time/sampling,env/all/stop/length
  kubectl tinker metrics arithmetic --select reward,optim/lr -o plain > reward.tsv`

type metricsFlags struct {
	plot, selected []string
	width, height  int
	last           int
	all            bool
	image          string
	format         *output.Format
}

// NewMetrics returns the command that prints the history of a run.
func NewMetrics(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	var f metricsFlags
	command := cluster.ForOneRun(&cobra.Command{
		Use: "metrics RUN", Short: "Print or draw the figures of each step of a run", Long: metricsHelp,
		Example: metricsExample,
		PreRunE: func(*cobra.Command, []string) error {
			if f.width < 10 || f.height < 2 || f.last < 0 {
				return cli.Misused("--width is at least 10, --height at least 2 and --last at least 0")
			}
			return nil
		},
	}, func(ctx context.Context, connection *cli.Connection, run *v1alpha1.TrainingRun) error {
		return f.run(ctx, env, connection, run)
	})
	flags := command.Flags()
	f.format = output.Flag(flags)
	flags.StringSliceVar(&f.plot, "plot", nil, "draw these `METRICS` as curves")
	flags.StringSliceVar(&f.selected, "select", nil, "print these `METRICS`")
	flags.IntVar(&f.last, "last", 0, "print the last `N` rows alone; 0 prints all")
	flags.BoolVar(&f.all, "all", false, "show all metrics, from the artifacts of a run that has any")
	flags.StringVar(&f.image, "image", "", "with --all, `IMAGE` of the pod that reads the artifacts. Defaults to the image of "+
		"the run's newest attempt")
	flags.IntVar(&f.width, "width", 72, "`COLUMNS` of a curve")
	flags.IntVar(&f.height, "height", 10, "`LINES` of a curve")
	return command
}

func (f metricsFlags) run(ctx context.Context, env cli.IO, connection *cli.Connection,
	run *v1alpha1.TrainingRun) error {
	h, err := f.read(ctx, env, connection, run)
	if err != nil {
		return err
	}
	if len(h.Rows) == 0 {
		fmt.Fprintf(env.Stderr, "run %s has no committed step in its history yet: kubectl tinker why %s says what it "+
			"waits for\n", run.Name, run.Name)
	}
	if len(f.plot) > 0 {
		return f.draw(env, h)
	}
	if f.all && len(f.selected) == 0 {
		return f.describe(env, h)
	}
	return f.print(env, h)
}

// read returns the history, or with --all the lines of the artifacts.
func (f metricsFlags) read(ctx context.Context, env cli.IO, connection *cli.Connection,
	run *v1alpha1.TrainingRun) (*history.History, error) {
	if !f.all || run.Spec.Artifacts == nil {
		return readHistory(ctx, connection, run)
	}
	lines, err := transcripts.Lines(ctx, env, connection, run, f.image, cmp.Or(f.last, mostLines))
	if err != nil {
		return nil, err
	}
	return historyOf(lines)
}

func (f metricsFlags) draw(env cli.IO, h *history.History) error {
	metrics, err := resolveMetrics(h, f.plot)
	if err != nil {
		return err
	}
	for i, metric := range metrics {
		if i > 0 {
			fmt.Fprintln(env.Stdout)
		}
		fmt.Fprint(env.Stdout, output.Curve(ShortName(metric), points(h, metric), f.width, f.height))
	}
	return nil
}

// usual are the columns without --select.
var usual = []string{
	contract.MetricReward, contract.MetricPassAt1, contract.MetricLoss, contract.MetricKLSampleTrain,
	contract.MetricEntropy,
	contract.MetricStepSeconds, contract.MetricSampledTokensPerSecond,
}

// usualOfRows are the columns of a supervised run without --select.
var usualOfRows = []string{
	contract.MetricNLL, contract.MetricHeldOutNLL, contract.MetricPassAt1, contract.MetricLoss, contract.MetricStepSeconds,
}

// usualIn returns the columns of a run without --select.
func usualIn(h *history.History) []string {
	for _, row := range h.Rows {
		if _, supervised := row.Metrics[contract.MetricNLL]; supervised {
			return usualOfRows
		}
	}
	return usual
}

// row is a row as JSON shows it.
type row struct {
	Step    int64              `json:"step"`
	Attempt int32              `json:"attempt"`
	Time    string             `json:"time,omitempty"`
	Lineage string             `json:"lineage"`
	Metrics map[string]float64 `json:"metrics"`
}

func (f metricsFlags) print(env cli.IO, h *history.History) error {
	columns := usualIn(h)
	if len(f.selected) > 0 {
		var err error
		if columns, err = resolveMetrics(h, f.selected); err != nil {
			return err
		}
	}
	rows := h.Rows
	if f.last > 0 {
		rows = rows[max(0, len(rows)-f.last):]
	}
	result := output.Result{Header: []string{"STEP"}}
	for _, metric := range columns {
		result.Header = append(result.Header, strings.ToUpper(ShortName(metric)))
	}
	all := []row{}
	for _, r := range rows {
		line := []string{strconv.FormatInt(r.Step, 10)}
		for _, metric := range columns {
			line = append(line, number(r.Metrics, metric))
		}
		result.Rows = append(result.Rows, line)
		shown := row{Step: r.Step, Attempt: r.Attempt, Lineage: r.Lineage, Metrics: r.Metrics}
		if r.Time > 0 {
			shown.Time = time.Unix(r.Time, 0).UTC().Format(time.RFC3339)
		}
		all = append(all, shown)
	}
	result.Value = all
	return output.Print(env, *f.format, result)
}
