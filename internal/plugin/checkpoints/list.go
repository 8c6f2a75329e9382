// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoints

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
)

const listExample = `  kubectl tinker checkpoints list arithmetic
  kubectl tinker checkpoints list arithmetic -o json`

// listed is a checkpoint as JSON shows it.
type listed struct {
	v1alpha1.Checkpoint
	Best bool `json:"best,omitempty"`
}

func newList(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	var format *output.Format
	command := cluster.ForOneRun(&cobra.Command{
		Use: "list RUN", Short: "List the checkpoints of a run", Example: listExample,
		Long: "kubectl tinker checkpoints list prints the checkpoints that the status of a run names, the newest first.",
	}, func(_ context.Context, _ *cli.Connection, run *v1alpha1.TrainingRun) error {
		if len(Known(run)) == 0 && *format == output.Table {
			fmt.Fprintf(env.Stderr, "run %q has no checkpoint yet\n", run.Name)
			return nil
		}
		return output.Print(env, *format, table(run, env.Now()))
	})
	format = output.Flag(command.Flags())
	return command
}

// table returns the checkpoints of a run.
func table(run *v1alpha1.TrainingRun, now time.Time) output.Result {
	result := output.Result{Header: []string{"STEP", "BEST", "SAVED", "EXPIRES", "METRIC", "LINEAGE", "STATE", "SAMPLER"}}
	values := []listed{}
	for _, c := range Known(run) {
		item := listed{Checkpoint: c, Best: c.Name == run.Status.BestCheckpoint}
		mark, metric := "", ""
		if item.Best {
			mark = "*"
		}
		if item.Value != nil {
			metric = item.Metric + "=" + output.Number(item.Value)
		}
		result.Rows = append(result.Rows, []string{
			fmt.Sprint(c.Step), mark, Saved(c.SaveTime, now), Expires(c.ExpirationTime, now), output.Safe(metric),
			output.Safe(c.Lineage),
			output.Safe(c.State), output.Safe(c.Sampler),
		})
		values = append(values, item)
	}
	result.Value = values
	return result
}

// Saved says how long ago a checkpoint was saved.
func Saved(t *metav1.Time, now time.Time) string {
	if t == nil {
		return ""
	}
	return output.Duration(now.Sub(t.Time)) + " ago"
}

// Expires says when a checkpoint expires.
func Expires(t *metav1.Time, now time.Time) string {
	switch {
	case t == nil:
		return "never"
	case !now.Before(t.Time):
		return "expired"
	}
	return "in " + output.Duration(t.Sub(now))
}
