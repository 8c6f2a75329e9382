// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugin is the program kubectl-tinker, a plugin of kubectl: `kubectl tinker COMMAND`. Each group of commands
// has a package of its own below this one.
package plugin

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tinker-operator/tinker-operator/internal/nearest"
	"github.com/tinker-operator/tinker-operator/internal/plugin/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/plugin/change"
	"github.com/tinker-operator/tinker-operator/internal/plugin/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/observe"
	"github.com/tinker-operator/tinker-operator/internal/plugin/platform"
	"github.com/tinker-operator/tinker-operator/internal/plugin/rubrics"
	"github.com/tinker-operator/tinker-operator/internal/plugin/starter"
	"github.com/tinker-operator/tinker-operator/internal/plugin/talk"
	"github.com/tinker-operator/tinker-operator/internal/plugin/tokens"
	"github.com/tinker-operator/tinker-operator/internal/plugin/transcripts"
	"github.com/tinker-operator/tinker-operator/internal/plugin/try"
	"github.com/tinker-operator/tinker-operator/internal/plugin/ui"
	"github.com/tinker-operator/tinker-operator/internal/version"
)

// program is the name by which people call the program.
const program = "kubectl tinker"

// completer is the name under which kubectl calls the program for completions.
const completer = "kubectl_complete-tinker"

// Run runs the command that the arguments name, after the program's own name, and returns the exit code.
func Run(ctx context.Context, env cli.IO, args []string) int {
	root := newRoot(env)
	if filepath.Base(args[0]) == completer {
		args = append([]string{args[0], cobra.ShellCompRequestCmd}, args[1:]...)
	}
	root.SetArgs(args[1:])
	command, err := root.ExecuteContextC(ctx)
	var misuse *cli.UsageError
	switch {
	case err == nil, errors.Is(err, pflag.ErrHelp):
		return 0
	case errors.Is(err, cli.ErrSilent):
		return cli.ExitFailure
	case errors.As(err, &misuse):
		fmt.Fprintf(env.Stderr, "%s: %v\n%s --help shows its usage\n", command.CommandPath(), err, command.CommandPath())
		return cli.ExitUsage
	default:
		fmt.Fprintf(env.Stderr, "%s: %v\n", command.CommandPath(), err)
		return cli.ExitFailure
	}
}

func newRoot(env cli.IO) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-tinker",
		Short: "Look at runs of tinker-operator, change them, and see what a model sees",
		Long: `kubectl tinker works with the TrainingRuns of a cluster, and shows what a model that is trained
through the Tinker API sees.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: program},
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          func(command *cobra.Command, args []string) error { return refuse(command, args) },
	}
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.SetIn(env.Stdin)
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error { return unknownFlag(command, err) })
	cluster := cli.NewCluster(root.PersistentFlags())
	root.AddGroup(&cobra.Group{ID: "observe", Title: "Look at runs:"},
		&cobra.Group{ID: "change", Title: "Make and change runs:"},
		&cobra.Group{ID: "talk", Title: "Talk to checkpoints:"},
		&cobra.Group{ID: "model", Title: "See what a model sees:"})
	group := func(id string, commands ...*cobra.Command) {
		for _, command := range commands {
			command.GroupID = id
			root.AddCommand(command)
		}
	}
	group("observe", observe.NewTop(env, cluster), observe.NewWhy(env, cluster), observe.NewMetrics(env, cluster),
		observe.NewCompare(env, cluster),
		observe.NewLogs(env, cluster), transcripts.New(env, cluster), artifacts.New(env, cluster),
		checkpoints.New(env, cluster), ui.New(env, cluster), platform.NewEndpoints(env, cluster),
		platform.NewUsage(env, cluster))
	group("change", starter.New(env), try.New(env), change.NewCreate(env, cluster), change.NewPlan(env, cluster),
		change.NewFork(env, cluster), change.NewSuspend(env, cluster),
		change.NewResume(env, cluster), change.NewRetry(env, cluster), change.NewScale(env, cluster))
	group("talk", talk.NewServe(env, cluster), talk.NewChat(env, cluster))
	group("model", tokens.NewTokens(env), tokens.NewRender(env))
	root.AddCommand(rubrics.New(env), newVersion(env))
	return root
}

func newVersion(env cli.IO) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  kubectl tinker version",
		Args:    cli.NoArgs("the command takes none"),
		Run:     func(*cobra.Command, []string) { fmt.Fprintln(env.Stdout, version.String()) },
	}
}

// refuse reports the problem of a command line that names no command.
func refuse(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		root.SetOut(root.ErrOrStderr())
		_ = root.Help()
		return cli.Misused("a command is missing")
	}
	var names []string
	for _, command := range root.Commands() {
		if command.IsAvailableCommand() {
			names = append(names, command.Name())
		}
	}
	if near := nearest.Name(args[0], names); near != "" {
		return cli.Misused("there is no command %q: did you mean %s?", args[0], near)
	}
	return cli.Misused("there is no command %q: the commands are %s", args[0], strings.Join(names, ", "))
}

// unknownFlag adds the nearest flag to an error about a flag that does not exist.
func unknownFlag(command *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return cli.Misused("%w", err)
	}
	var names []string
	command.Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	if near := nearest.Name(unknown.GetSpecifiedName(), names); near != "" {
		return cli.Misused("%w: did you mean --%s?", err, near)
	}
	return cli.Misused("%w", err)
}
