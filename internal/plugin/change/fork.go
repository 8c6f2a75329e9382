// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/manifest"
)

const forkHelp = `kubectl tinker fork creates a run that begins with the weights of a checkpoint of another
run, with fields that --set changes. The new run counts its own steps from 0.

Without --step or --best, it begins at the newest checkpoint. --optimizer Reset begins with a new optimizer
instead of the saved one.

The new run sees the tasks in another order and samples others, since its algorithm.seed is one higher unless --set
gives one. With --continue-data it has the seed of the other run and begins after the tasks that led to the checkpoint:
it sees those that the other run would have seen next.`

const forkExample = `  kubectl tinker fork arithmetic --step 40 --set spec.algorithm.optimizer.learningRate=1.0e-5
  kubectl tinker fork arithmetic --best --set spec.algorithm.seed=2
  kubectl tinker fork arithmetic --step 40 --continue-data --set spec.algorithm.optimizer.learningRate=1.0e-5
  kubectl tinker fork arithmetic --name arithmetic-long --set spec.algorithm.steps=200`

type forkFlags struct {
	step            int64
	best            bool
	name, optimizer string
	set             []string
	dryRun          bool
	// continueData begins at the task at which the other run was.
	continueData bool
}

// NewFork returns the command that makes a run from a checkpoint of another.
func NewFork(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	var f forkFlags
	command := cluster.ForOneRun(&cobra.Command{
		Use: "fork RUN", Short: "Create a run from a checkpoint of another", Long: forkHelp, Example: forkExample,
	}, func(ctx context.Context, connection *cli.Connection, run *v1alpha1.TrainingRun) error {
		return f.run(ctx, env, connection, run)
	})
	flags := command.Flags()
	flags.Int64Var(&f.step, "step", -1, "`STEP` of the checkpoint; without it, the newest")
	flags.BoolVar(&f.best, "best", false, "begin at the best checkpoint by spec.checkpoints.bestMetric")
	flags.StringVar(&f.name, "name", "", "`NAME` of the new run; without it, RUN-sSTEP")
	flags.StringVar(&f.optimizer, "optimizer", string(v1alpha1.OptimizerRestore),
		"`MODE` of the saved optimizer: Restore or Reset")
	flags.BoolVar(&f.continueData, "continue-data", false,
		"begin after the tasks that led to the checkpoint, with the seed of the other run")
	flags.StringArrayVar(&f.set, "set", nil, "`PATH=VALUE` sets a field; may be given several times")
	flags.BoolVar(&f.dryRun, "dry-run", false, "have the API server check the run and do not create it")
	return command
}

func (f forkFlags) run(ctx context.Context, env cli.IO, connection *cli.Connection,
	run *v1alpha1.TrainingRun) error {
	if f.best && f.step >= 0 {
		return cli.Misused("give --best or --step, not both")
	}
	checkpoint, err := checkpoints.Choose(run, f.step, f.best)
	if err != nil {
		return err
	}
	forked, err := f.fork(run, checkpoint)
	if err != nil {
		return err
	}
	return create(ctx, env, connection, nil, []*unstructured.Unstructured{forked}, f.dryRun)
}

// fork returns a run that begins with a checkpoint.
func (f forkFlags) fork(run *v1alpha1.TrainingRun, checkpoint v1alpha1.Checkpoint) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&struct {
		Spec v1alpha1.TrainingRunSpec `json:"spec"`
	}{Spec: run.Spec})
	if err != nil {
		return nil, fmt.Errorf("copying run %q: %w", run.Name, err)
	}
	forked := &unstructured.Unstructured{Object: content}
	forked.SetAPIVersion(v1alpha1.SchemeGroupVersion.String())
	forked.SetKind(manifest.KindRun)
	spec, _ := content["spec"].(map[string]any)
	delete(spec, "suspend")
	delete(spec, "retryGeneration")
	delete(spec, "resumeFrom") // The fork has a lineage of its own.
	source := map[string]any{"checkpoint": checkpoint.State}
	if run.Spec.Mode != v1alpha1.ModeEvaluate {
		source["optimizer"] = f.optimizer
	}
	if err := f.selectData(run, spec, source); err != nil {
		return nil, err
	}
	spec["initFrom"] = source
	return forked, assign(forked, cmp.Or(f.name, fmt.Sprintf("%s-s%d", run.Name, checkpoint.Step)), f.set)
}

// selectData selects the tasks that the fork sees: the tasks after the checkpoint, or all tasks in another order.
func (f forkFlags) selectData(run *v1alpha1.TrainingRun, spec, source map[string]any) error {
	if run.Spec.Algorithm == nil {
		if f.continueData {
			return cli.Misused("run %q trains nothing, so that there are no data to continue", run.Name)
		}
		return nil
	}
	if f.continueData {
		if slices.ContainsFunc(f.set, func(s string) bool { return strings.HasPrefix(s, "spec.algorithm.seed=") }) {
			return cli.Misused("--continue-data needs the seed of the other run, which decides the order of tasks: remove " +
				"--set spec.algorithm.seed, or --continue-data")
		}
		source["data"] = string(v1alpha1.DataContinue)
		return nil
	}
	return unstructured.SetNestedField(spec, run.Spec.Algorithm.Seed+1, "algorithm", "seed")
}
