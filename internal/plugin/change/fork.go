// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/manifest"
)

const forkHelp = `kubectl tinker fork creates a run that begins with the weights of a checkpoint of another run, with fields that --set
changes. The new run counts its own steps from 0.

Without --step, it begins at the newest checkpoint. --optimizer Reset begins with a new optimizer instead of the saved one.`

const forkExample = `  kubectl tinker fork arithmetic --step 40 --set spec.algorithm.optimizer.learningRate=1.0e-5
  kubectl tinker fork arithmetic --name arithmetic-long --set spec.algorithm.steps=200`

type forkFlags struct {
	step            int64
	name, optimizer string
	set             []string
	dryRun          bool
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
	flags.StringVar(&f.name, "name", "", "`NAME` of the new run; without it, RUN-sSTEP")
	flags.StringVar(&f.optimizer, "optimizer", string(v1alpha1.OptimizerRestore),
		"`MODE` of the saved optimizer: Restore or Reset")
	flags.StringArrayVar(&f.set, "set", nil, "`PATH=VALUE` sets a field; may be given several times")
	flags.BoolVar(&f.dryRun, "dry-run", false, "have the API server check the run and do not create it")
	return command
}

func (f forkFlags) run(ctx context.Context, env cli.IO, connection *cli.Connection,
	run *v1alpha1.TrainingRun) error {
	checkpoint, err := checkpoints.Choose(run, f.step, false)
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
	spec["initFrom"] = source
	return forked, assign(forked, cmp.Or(f.name, fmt.Sprintf("%s-s%d", run.Name, checkpoint.Step)), f.set)
}
