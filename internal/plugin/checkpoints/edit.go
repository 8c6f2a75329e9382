// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoints

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

const publishHelp = `kubectl tinker checkpoints publish lets everybody who has an account at the endpoint
sample from a checkpoint and download it. It
publishes the sampler weights, and with --training-state the state to train on from, too. unpublish reverses it.
Without --step and
--best it is the newest checkpoint. The endpoint keeps who owns a checkpoint: only the owner's key can publish it.`

const publishExample = `  kubectl tinker checkpoints publish arithmetic --best
  kubectl tinker checkpoints publish arithmetic --step 40 --training-state --yes
  kubectl tinker checkpoints unpublish arithmetic --step 40`

const deleteHelp = `kubectl tinker checkpoints delete deletes the sampler weights and the training states of
steps at the endpoint, where nothing brings them back.

A checkpoint that a run would resume from, or begin with by spec.initFrom, is refused without --force, and so are the
result of a run, its best checkpoint, those that a run or the judge of a RewardEnvironment samples from, and those of
the window of spec.algorithm.lag. Only the runs of the namespace are looked at: runs elsewhere may use the same
checkpoint. The status of a run may name
a checkpoint that was deleted here.`

const deleteExample = `  kubectl tinker checkpoints delete arithmetic --step 10 --step 20
  kubectl tinker checkpoints delete arithmetic --step 10 --yes`

// editor is a command that changes checkpoints at the endpoint.
type editor struct {
	steps       []int64
	best, state bool
	force, yes  bool
	baseURL     string
	format      *output.Format
	// done names the change of a checkpoint, in the result.
	done string
	// question is the question that a person confirms.
	question string
	// guards says that the command refuses checkpoints that are in use.
	guards bool
	apply  func(ctx context.Context, api *client.Client, path string) error
}

// target is one path of a checkpoint.
type target struct {
	Step   int64  `json:"step"`
	Path   string `json:"path"`
	Result string `json:"result"`
}

func newPublish(env cli.IO, cluster *cli.Cluster, public bool) *cobra.Command {
	name, e := "publish", editor{done: "public", question: "Let everybody at the endpoint read"}
	short := "Let everybody at the endpoint read a checkpoint"
	if !public {
		name, e.done, e.question = "unpublish", "private", ""
		short = "Let the owner alone read a checkpoint"
	}
	e.apply = publish(public)
	command := e.command(env, cluster, &cobra.Command{Use: name + " RUN", Short: short, Long: publishHelp,
		Example: publishExample})
	command.Flags().BoolVar(&e.best, "best", false, "choose the best checkpoint by spec.checkpoints.keepBest")
	command.Flags().BoolVar(&e.state, "training-state", false, "also the state to train on from, with its optimizer")
	return command
}

func newDelete(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	e := editor{done: "deleted", question: "Delete, so that nothing brings it back,", guards: true, state: true,
		apply: remove}
	command := e.command(env, cluster, &cobra.Command{
		Use: "delete RUN --step STEP", Short: "Delete checkpoints at the endpoint", Long: deleteHelp, Example: deleteExample,
	})
	command.Flags().BoolVar(&e.force, "force", false, "also delete a checkpoint that is in use")
	return command
}

func publish(public bool) func(context.Context, *client.Client, string) error {
	return func(ctx context.Context, api *client.Client, path string) error {
		return api.Publish(ctx, path, public)
	}
}

func remove(ctx context.Context, api *client.Client, path string) error {
	return api.DeleteCheckpoint(ctx, path)
}

// command completes a command that runs the editor.
func (e *editor) command(env cli.IO, cluster *cli.Cluster, command *cobra.Command) *cobra.Command {
	command.PreRunE = func(*cobra.Command, []string) error { return e.check() }
	cluster.ForOneRun(command, func(ctx context.Context, connection *cli.Connection,
		run *v1alpha1.TrainingRun) (err error) {
		chosen, err := e.choose(run)
		if err != nil {
			return err
		}
		used, err := e.usersOf(ctx, connection, run)
		if err != nil {
			return err
		}
		if err := e.guard(run, chosen, used); err != nil {
			return err
		}
		at, err := Open(ctx, env, connection, run, e.baseURL)
		defer func() { err = errors.Join(err, at.Close(ctx)) }()
		if err != nil {
			return err
		}
		if err := at.AddSamplers(ctx, env, chosen); err != nil {
			return err
		}
		// AddSamplers has added sampler weights that the status does not name.
		if err := e.guard(run, chosen, used); err != nil {
			return err
		}
		targets, err := e.targets(chosen)
		if err != nil {
			return err
		}
		if err := e.confirm(ctx, env, targets); err != nil {
			return err
		}
		return e.edit(ctx, env, at, targets)
	})
	flags := command.Flags()
	e.format = output.Flag(flags)
	flags.Int64SliceVar(&e.steps, "step", nil, "`STEP` of the checkpoint; may be given several times")
	flags.BoolVarP(&e.yes, "yes", "y", false, "do not ask")
	flags.StringVar(&e.baseURL, "base-url", "", "`URL` at which this machine reaches the endpoint; without it, "+
		"TINKER_BASE_URL or the run's own")
	return command
}

func (e *editor) check() error {
	switch {
	case e.best && len(e.steps) > 0:
		return cli.Misused("--step and --best exclude each other: give one of them")
	case e.guards && len(e.steps) == 0:
		return cli.Misused("--step is required: the step of the checkpoint to delete")
	case slices.ContainsFunc(e.steps, func(step int64) bool { return step < 0 }):
		return cli.Misused("no step is below 0: give the step of a checkpoint")
	}
	return nil
}

// choose returns the checkpoints to change.
func (e *editor) choose(run *v1alpha1.TrainingRun) ([]v1alpha1.Checkpoint, error) {
	steps := e.steps
	if len(steps) == 0 {
		steps = []int64{Newest}
	}
	var all []v1alpha1.Checkpoint
	for _, step := range steps {
		c, err := Choose(run, step, e.best)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// targets returns the paths to change.
func (e *editor) targets(chosen []v1alpha1.Checkpoint) ([]target, error) {
	var all []target
	for _, c := range chosen {
		before := len(all)
		if c.Sampler != "" {
			all = append(all, target{Step: c.Step, Path: c.Sampler})
		}
		if e.state && c.State != "" {
			all = append(all, target{Step: c.Step, Path: c.State})
		}
		if len(all) == before {
			return nil, fmt.Errorf("the checkpoint of step %d has no sampler weights: add --training-state, or choose another "+
				"one with --step", c.Step)
		}
	}
	return all, nil
}

// confirm asks the question at a terminal, unless there is none or --yes answers it. It fails if there is no
// terminal, or if the answer is not yes.
func (e *editor) confirm(ctx context.Context, env cli.IO, targets []target) error {
	if e.yes || e.question == "" {
		return nil
	}
	return cli.Confirm(ctx, env, e.ask(targets))
}

// ask returns the question about checkpoints.
func (e *editor) ask(targets []target) string {
	var text strings.Builder
	for _, t := range targets {
		fmt.Fprintf(&text, "  step %d  %s\n", t.Step, t.Path)
	}
	these := "these checkpoints"
	if len(targets) == 1 {
		these = "this checkpoint"
	}
	return fmt.Sprintf("%s%s %s?", text.String(), e.question, these)
}

// edit changes the checkpoints, and prints the outcome of each.
func (e *editor) edit(ctx context.Context, env cli.IO, at Endpoint, targets []target) error {
	ctx, cancel := context.WithTimeout(ctx, archivePatience)
	defer cancel()
	api, err := at.Client(func(message string) { fmt.Fprintln(env.Stderr, message) }, cancel)
	if err != nil {
		return err
	}
	result := output.Result{Header: []string{"STEP", "RESULT", "PATH"}}
	changed := []target{}
	var errs []error
	for _, t := range targets {
		if err := e.apply(ctx, api, t.Path); err != nil {
			errs = append(errs, fmt.Errorf("changing %s: %w", t.Path, at.explain(err)))
			continue
		}
		t.Result = e.done
		changed = append(changed, t)
		result.Rows = append(result.Rows, []string{fmt.Sprint(t.Step), t.Result, output.Safe(t.Path)})
	}
	result.Value = changed
	if len(changed) > 0 || *e.format == output.JSON {
		errs = append(errs, output.Print(env, cmp.Or(*e.format, output.Table), result))
	}
	return errors.Join(errs...)
}
