// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package try has the command of `kubectl tinker` that plays episodes or trains steps in its own process, without a
// cluster: with the learner, the workers and the environments that the pods run, on tinkersim or on an endpoint.
package try

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
)

const tryHelp = `kubectl tinker try plays a few episodes of a RewardEnvironment, or trains a few steps of a TrainingRun, in one process on this
machine. It needs no cluster. The learner, the workers and the environments are those of the pods, and the
conversations are printed with their rewards.

A file that has a TrainingRun is trained for --steps steps, with the RewardEnvironments of the same file; with
--episodes, its environments are only played. A file that has one RewardEnvironment is played. The file may also have
the ConfigMaps and Secrets that these refer to. Settings are checked as at kubectl apply, and expressions of rewards
by their types.

Without --url the model is tinkersim/byte-136k, which this program contains. With --url it is the model of the run or of
--model at that endpoint, and the variable TINKER_API_KEY has the key. Its tokens may be billed: unless the endpoint is
on this machine, the command asks first, or needs --yes. A run that is trained there ends at its spec.budget.`

const tryExample = `  kubectl tinker try -f config/samples/arithmetic.yaml
  kubectl tinker try -f environment.yaml --episodes 8 --watch
  kubectl tinker try -f environment.yaml --data tasks=./tasks        # the claim or ConfigMap tasks is the folder ./tasks
  kubectl tinker try -f environment.yaml --ors env=http://localhost:8080
  kubectl tinker try -f environment.yaml --ors-command 'env=python server.py' --watch
  kubectl tinker try -f run.yaml --url https://tinker.thinkingmachines.dev/services/tinker-prod --steps 1 --yes -o json`

// flags are the command's flags.
type flags struct {
	file, url, model, checkpoint, environment string
	steps                                     int64
	episodes, maxTokens                       int
	ors, orsCommands, data, secrets           []string
	verbose, watching, yes                    bool
	// stepsGiven says that the flag --steps is set.
	stepsGiven bool
}

// New returns the command.
func New(env cli.IO) *cobra.Command {
	var f flags
	var format *output.Format
	command := &cobra.Command{
		Use: "try -f FILE", Short: "Play episodes or train steps on this machine, without a cluster", Long: tryHelp,
		Example: tryExample,
		Args:    cli.NoArgs("the objects are read from -f FILE"),
		RunE: func(command *cobra.Command, _ []string) error {
			f.stepsGiven = command.Flags().Changed("steps")
			return f.run(command.Context(), env, *format)
		},
	}
	set := command.Flags()
	cli.FileFlag(set, &f.file,
		"`FILE` that has a TrainingRun or a RewardEnvironment, - for the standard input (required)")
	set.StringVar(&f.url, "url", "", "`URL` of an endpoint in the place of the simulator; the variable TINKER_API_KEY "+
		"has its key")
	set.StringVar(&f.model, "model", "", "`NAME` of the model in the place of the run's")
	set.StringVar(&f.checkpoint, "checkpoint", "",
		"`PATH` of sampler weights that play episodes, tinker://RUN/sampler_weights/NAME")
	set.StringVar(&f.environment, "environment", "", "`NAME` of the RewardEnvironment to play where the file has several")
	set.Int64Var(&f.steps, "steps", 2, "how many steps of a run are trained")
	set.IntVar(&f.episodes, "episodes", 0, "how many episodes are played, and no step is trained; 4 for a "+
		"RewardEnvironment")
	set.IntVar(&f.maxTokens, "max-tokens", 0, "how many tokens a reply may have; without it as the run says, or 256")
	set.StringArrayVar(&f.ors, "ors", nil, "`NAME=URL` is where the server of the RewardEnvironment NAME runs; may be "+
		"given several times")
	set.StringArrayVar(&f.orsCommands, "ors-command", nil, "`NAME=COMMAND` starts the server of the RewardEnvironment "+
		"NAME, at the port that the variable PORT names; may be given several times")
	set.StringArrayVar(&f.data, "data", nil, "`NAME=DIR` is the folder of the claim or ConfigMap NAME; may be given "+
		"several times")
	set.StringArrayVar(&f.secrets, "secret", nil,
		"`NAME=DIR` is the folder of the Secret NAME, with a file for each key; may be given several times")
	set.BoolVarP(&f.verbose, "verbose", "v", false, "print the log of the learner and the workers on the standard error")
	set.BoolVarP(&f.yes, "yes", "y", false, "buy tokens of the endpoint without a question")
	set.BoolVar(&f.watching, "watch", false, "try again whenever the file has changed, or a file in a folder of --data, "+
		"--secret or PYTHONPATH, or with --ors-command a Python file below this folder")
	_ = command.MarkFlagFilename("filename", "yaml", "yml", "json")
	format = output.Flag(set)
	return command
}

func (f flags) run(ctx context.Context, env cli.IO, format output.Format) error {
	if f.file == "" {
		return cli.Misused("-f is required: a file that has a TrainingRun or a RewardEnvironment")
	}
	if f.steps < 1 || f.episodes < 0 || f.maxTokens < 0 {
		return cli.Misused("--steps is at least 1, --episodes and --max-tokens are not negative")
	}
	env.Stderr = &lines{w: env.Stderr}
	if !f.watching {
		return f.once(ctx, env, format)
	}
	if err := f.checkWatch(); err != nil {
		return err
	}
	return f.watch(ctx, env, format)
}

// once tries the file as it is now.
func (f flags) once(ctx context.Context, env cli.IO, format output.Format) error {
	data, err := env.ReadInput(f.file, os.ReadFile)
	if err != nil {
		return fmt.Errorf("reading the file: %w", err)
	}
	in, err := f.read(ctx, data)
	if err != nil {
		return fmt.Errorf("reading %s: %w", cli.InputName(f.file), err)
	}
	dir, err := os.MkdirTemp("", "kubectl-tinker-try-")
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	t := trial{flags: f, input: in, env: env, dir: dir, format: format, logger: newLogger(env.Stderr, f.verbose)}
	return t.run(ctx)
}
