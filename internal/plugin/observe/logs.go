// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
)

const logsHelp = `kubectl tinker logs prints the log of a run's learner, or of its rollout workers.

Without --attempt, it is the newest attempt that has a pod. Lines of several workers begin with the pod's name.`

const logsExample = `  kubectl tinker logs arithmetic --follow
  kubectl tinker logs arithmetic --attempt 2
  kubectl tinker logs arithmetic --role rollout --tail 20`

type logsFlags struct {
	attempt  int32
	role     string
	follow   bool
	previous bool
	tail     int64
}

// NewLogs returns the command that prints logs.
func NewLogs(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	var f logsFlags
	command := cluster.ForOneRun(&cobra.Command{
		Use: "logs RUN", Short: "Print the log of a run's learner or workers", Long: logsHelp, Example: logsExample,
		PreRunE: func(*cobra.Command, []string) error { return f.check() },
	}, func(ctx context.Context, connection *cli.Connection, run *v1alpha1.TrainingRun) error {
		return f.run(ctx, env, connection, run)
	})
	flags := command.Flags()
	flags.Int32Var(&f.attempt, "attempt", 0, "`NUMBER` of the learner's attempt; 0 for the newest")
	flags.StringVar(&f.role, "role", v1alpha1.RoleLearner, "`ROLE` of the pods: learner or rollout")
	flags.BoolVarP(&f.follow, "follow", "f", false, "print what is logged until the pods end")
	flags.BoolVarP(&f.previous, "previous", "p", false, "print the log of the container before its last restart")
	flags.Int64Var(&f.tail, "tail", -1, "print the last `N` lines of each pod; -1 prints all")
	_ = command.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(
		[]cobra.Completion{v1alpha1.RoleLearner, v1alpha1.RoleRollout}, cobra.ShellCompDirectiveNoFileComp))
	return command
}

// check refuses flags that contradict each other.
func (f logsFlags) check() error {
	if f.role != v1alpha1.RoleLearner && f.role != v1alpha1.RoleRollout {
		return cli.Misused("--role is %q: choose learner or rollout", f.role)
	}
	if f.attempt != 0 && f.role != v1alpha1.RoleLearner {
		return cli.Misused("--attempt only applies to the learner: workers outlive attempts")
	}
	return nil
}

func (f logsFlags) run(ctx context.Context, env cli.IO, connection *cli.Connection,
	run *v1alpha1.TrainingRun) error {
	var list corev1.PodList
	selected := client.MatchingLabels{v1alpha1.LabelRun: run.Name, v1alpha1.LabelRunUID: string(run.UID),
		v1alpha1.LabelRole: f.role}
	if err := connection.List(ctx, &list, client.InNamespace(run.Namespace), selected); err != nil {
		return fmt.Errorf("listing the pods of run %q: %w", run.Name, err)
	}
	pods, err := f.choose(run, list.Items)
	if err != nil {
		return err
	}
	core, err := corev1client.NewForConfig(connection.Config)
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	return f.print(ctx, env.Stdout, core.Pods(run.Namespace), pods)
}

// choose returns the pods whose logs to print.
func (f logsFlags) choose(run *v1alpha1.TrainingRun, pods []corev1.Pod) ([]corev1.Pod, error) {
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	if f.role != v1alpha1.RoleLearner {
		if len(pods) == 0 {
			return nil, fmt.Errorf("run %q has no workers now: kubectl tinker why %s says why", run.Name, run.Name)
		}
		return pods, nil
	}
	var attempts []int32
	for _, pod := range pods {
		attempts = append(attempts, attemptOf(pod))
	}
	if len(attempts) == 0 {
		return nil, fmt.Errorf("run %q has no learner's pod: kubectl tinker why %s says why", run.Name, run.Name)
	}
	wanted := f.attempt
	if wanted == 0 {
		wanted = slices.Max(attempts)
	}
	chosen := slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return attemptOf(pod) != wanted })
	if len(chosen) == 0 {
		slices.Sort(attempts)
		return nil, fmt.Errorf("attempt %d of run %q has no pod any more: the logs of these attempts are left: %s", wanted,
			run.Name,
			strings.Trim(fmt.Sprint(slices.Compact(attempts)), "[]"))
	}
	return chosen, nil
}

func attemptOf(pod corev1.Pod) int32 {
	attempt, _ := strconv.ParseInt(pod.Labels[v1alpha1.LabelAttempt], 10, 32)
	return int32(attempt)
}

// print prints the logs of pods. If they are followed, it prints all at once, otherwise one after the other.
func (f logsFlags) print(ctx context.Context, w io.Writer, api corev1client.PodInterface, pods []corev1.Pod) error {
	options := &corev1.PodLogOptions{Follow: f.follow, Previous: f.previous}
	if f.tail >= 0 {
		options.TailLines = &f.tail
	}
	var lock sync.Mutex
	errs := make([]error, len(pods))
	var group sync.WaitGroup
	for i, pod := range pods {
		prefix := ""
		if len(pods) > 1 {
			prefix = pod.Name + " "
		}
		print := func() {
			stream, err := api.GetLogs(pod.Name, options).Stream(ctx)
			if err == nil {
				err = errors.Join(copyLines(w, stream, prefix, &lock), stream.Close())
			}
			if err != nil && ctx.Err() == nil {
				errs[i] = fmt.Errorf("reading the log of pod %s: %w", pod.Name, err)
			}
		}
		if f.follow {
			group.Go(print)
		} else {
			print()
		}
	}
	group.Wait()
	return errors.Join(errs...)
}

// copyLines copies whole lines, each after a prefix.
func copyLines(w io.Writer, from io.Reader, prefix string, lock sync.Locker) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			lock.Lock()
			_, writeErr := io.WriteString(w, prefix+strings.TrimSuffix(line, "\n")+"\n")
			lock.Unlock()
			if writeErr != nil {
				return writeErr
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
