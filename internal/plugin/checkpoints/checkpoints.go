// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package checkpoints has the commands that list, download, publish and delete the checkpoints of a run.
package checkpoints

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// New returns the command checkpoints.
func New(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	command := &cobra.Command{
		Use: "checkpoints", Short: "List, download, publish and delete the checkpoints of a run",
		Long: "kubectl tinker checkpoints lists the checkpoints that a run has saved, downloads adapters for other " +
			"programs, and publishes or\ndeletes checkpoints at the endpoint.",
		Example: listExample + "\n" + downloadExample + "\n" + publishExample + "\n" + deleteExample,
		Args:    cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Misused("there is no command %q: choose list, download, publish, unpublish or delete", args[0])
			}
			return cli.Misused("a command is missing: choose list, download, publish, unpublish or delete")
		},
	}
	command.AddCommand(newList(env, cluster), newDownload(env, cluster), newPublish(env, cluster, true),
		newPublish(env, cluster, false), newDelete(env, cluster))
	return command
}

// Known returns the checkpoints that the status of a run names, the newest first.
func Known(run *v1alpha1.TrainingRun) []v1alpha1.Checkpoint {
	all := slices.Clone(run.Status.Checkpoints)
	slices.SortStableFunc(all, func(a, b v1alpha1.Checkpoint) int { return cmp.Compare(b.Step, a.Step) })
	return slices.CompactFunc(all, func(a, b v1alpha1.Checkpoint) bool { return a.Step == b.Step })
}

// Newest is the step that asks for the newest checkpoint.
const Newest = -1

// Choose returns the checkpoint of a step, the best checkpoint, or the newest checkpoint if neither is asked for.
func Choose(run *v1alpha1.TrainingRun, step int64, best bool) (v1alpha1.Checkpoint, error) {
	all, chosen := Known(run), status.Best(&run.Status)
	switch {
	case len(all) == 0:
		return v1alpha1.Checkpoint{}, fmt.Errorf("run %q has no checkpoint yet: wait until it has saved one", run.Name)
	case best && chosen != nil:
		return *chosen, nil
	case best:
		return v1alpha1.Checkpoint{}, fmt.Errorf("run %q has no best checkpoint: it needs spec.checkpoints.keepBest and an "+
			"evaluation; choose another one with --step", run.Name)
	case step == Newest:
		return all[0], nil
	case step < 0:
		return v1alpha1.Checkpoint{}, cli.Misused("--step is %d, and no step is below 0: give one of kubectl tinker "+
			"checkpoints list %s, or leave --step out for the newest", step, run.Name)
	}
	var steps []string
	for _, c := range all {
		if c.Step == step {
			return c, nil
		}
		steps = append(steps, fmt.Sprint(c.Step))
	}
	return v1alpha1.Checkpoint{}, fmt.Errorf("run %q has no known checkpoint of step %d: choose one of %s", run.Name, step,
		strings.Join(steps, ", "))
}
