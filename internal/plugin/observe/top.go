// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/history"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
)

const topHelp = `kubectl tinker top shows the progress of all runs of a namespace, of all namespaces, or of one run with its
curves.

In a terminal, it draws the screen again every few seconds until you press q. Into a pipe, it prints a line for each run
whenever the run has changed, and ends when all runs have. With --once, it prints the present state and ends.`

const topExample = `  kubectl tinker top
  kubectl tinker top -A
  kubectl tinker top arithmetic
  kubectl tinker top arithmetic | tee progress.log
  kubectl tinker top --once -o json`

type topFlags struct {
	once   bool
	all    bool
	every  time.Duration
	format *output.Format
}

// NewTop returns the command that shows live progress.
func NewTop(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	var f topFlags
	command := &cobra.Command{
		Use: "top [RUN]", Short: "Show the progress of runs, live", Long: topHelp, Example: topExample,
		Args: cli.Args(0, 1, "at most one RUN"), ValidArgsFunction: cluster.CompleteRuns(1),
		RunE: func(command *cobra.Command, args []string) error {
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			return f.run(command.Context(), env, cluster, name)
		},
	}
	f.format = output.Flag(command.Flags())
	command.Flags().BoolVarP(&f.all, "all-namespaces", "A", false, "show the runs of all namespaces")
	command.Flags().BoolVar(&f.once, "once", false, "print the present state and end")
	command.Flags().DurationVar(&f.every, "every", 2*time.Second, "`TIME` between two looks at the cluster")
	return command
}

// source reads the contents of the screen.
type source struct {
	connection *cli.Connection
	// name is the run; empty means all runs of the namespace or of all namespaces.
	name          string
	allNamespaces bool
	now           func() time.Time
}

// snapshot is the state of the cluster at a moment.
type snapshot struct {
	at   time.Time
	runs []v1alpha1.TrainingRun
	// allNamespaces says that the runs are from all namespaces.
	allNamespaces bool
	// history is the history of the one run that is shown; nil if all runs are shown.
	history *history.History
}

// none returns the message that there is no run.
func (s source) none() string {
	if s.allNamespaces {
		return "no namespace has a run"
	}
	return fmt.Sprintf("namespace %s has no runs: choose another with --namespace", s.connection.Namespace)
}

func (s source) read(ctx context.Context) (snapshot, error) {
	taken := snapshot{at: s.now(), allNamespaces: s.allNamespaces}
	var err error
	switch {
	case s.allNamespaces:
		taken.runs, err = s.connection.AllRuns(ctx)
		return taken, err
	case s.name == "":
		taken.runs, err = s.connection.Runs(ctx)
		return taken, err
	}
	run, err := s.connection.Run(ctx, s.name)
	if err != nil {
		return snapshot{}, err
	}
	taken.runs = []v1alpha1.TrainingRun{*run}
	taken.history, err = readHistory(ctx, s.connection, run)
	return taken, err
}

func (f topFlags) run(ctx context.Context, env cli.IO, cluster *cli.Cluster, name string) error {
	if f.every < 100*time.Millisecond {
		return cli.Misused("--every is %s: give at least 100ms", f.every)
	}
	if f.all && name != "" {
		return cli.Misused("--all-namespaces shows all runs: leave %s out, or choose its namespace with --namespace", name)
	}
	connection, err := cluster.Connect()
	if err != nil {
		return err
	}
	from := source{connection: connection, name: name, allNamespaces: f.all, now: env.Now}
	first, err := from.read(ctx)
	if err != nil {
		return err
	}
	if len(first.runs) == 0 {
		fmt.Fprintln(env.Stderr, from.none())
	}
	switch {
	case f.once && first.history != nil && *f.format == output.Table:
		_, err := fmt.Fprint(env.Stdout, runScreen(first, defaultWidth))
		return err
	case f.once || *f.format == output.JSON:
		return output.Print(env, *f.format, overview(first))
	case *f.format == output.Table && isTerminal(env):
		return watch(ctx, env, from, first, f.every)
	default:
		return stream(ctx, env, from, first, f.every)
	}
}

// isTerminal reports whether the output is a terminal.
func isTerminal(env cli.IO) bool {
	file, ok := env.Stdout.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(file.Fd()))
}

// stream prints a line for each run that has changed, until all have ended.
func stream(ctx context.Context, env cli.IO, from source, now snapshot, every time.Duration) error {
	printed := map[string]string{}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		running := false
		for i := range now.runs {
			s := summarize(&now.runs[i], now.at).in(now)
			running = running || !s.ended
			if line := s.line(); printed[s.title()] != line {
				printed[s.title()] = line
				if _, err := fmt.Fprintf(env.Stdout, "%s %s\n", now.at.UTC().Format(time.RFC3339), line); err != nil {
					return err
				}
			}
		}
		if !running {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
		next, err := from.read(ctx)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil {
			now = next
		}
	}
}
