// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package change has the commands that make and change runs: create, plan, fork, suspend, resume, retry and scale.
package change

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
)

// edit is a change of a run's spec.
type edit struct {
	use, short, long, example string
	// apply changes the run and describes the effect. It does not change a run that needs no change.
	apply func(run *v1alpha1.TrainingRun) (string, error)
}

// command returns the command that applies an edit to runs.
func (e edit) command(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	return &cobra.Command{
		Use: e.use + " RUN...", Short: e.short, Long: e.long, Example: e.example,
		Args: cli.Args(1, -1, "the name of a RUN"), ValidArgsFunction: cluster.CompleteRuns(-1),
		RunE: func(command *cobra.Command, args []string) error {
			connection, err := cluster.Connect()
			if err != nil {
				return err
			}
			var errs []error
			for _, name := range args {
				message, err := e.to(command.Context(), connection, name)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				fmt.Fprintf(env.Stdout, "trainingrun %s %s\n", name, message)
			}
			return errors.Join(errs...)
		},
	}
}

// to applies the edit to a run. It tries again if the run was changed meanwhile.
func (e edit) to(ctx context.Context, connection *cli.Connection, name string,
	options ...client.PatchOption) (message string, err error) {
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		run, err := connection.Run(ctx, name)
		if err != nil {
			return err
		}
		before := run.DeepCopy()
		if message, err = e.apply(run); err != nil {
			return err
		}
		if err := connection.Patch(ctx, run, client.MergeFromWithOptions(before,
			client.MergeFromWithOptimisticLock{}), options...); err != nil {
			return fmt.Errorf("changing run %q: %w", name, err)
		}
		return nil
	})
	return message, err
}

// NewSuspend returns the command that suspends runs.
func NewSuspend(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	return edit{
		use: "suspend", short: "Stop runs at a saved state", example: "  kubectl tinker suspend arithmetic",
		long: "kubectl tinker suspend stops runs at a saved state and deletes their pods. kubectl tinker resume " +
			"continues them.",
		apply: suspendRun,
	}.command(env, cluster)
}

// suspendRun stops a run.
func suspendRun(run *v1alpha1.TrainingRun) (string, error) {
	if run.Status.CompletionTime != nil {
		return "", fmt.Errorf("run %q is over (%s): there is nothing to suspend", run.Name, run.Status.State)
	}
	if ptr.Deref(run.Spec.Suspend, false) {
		return "is suspended already", nil
	}
	run.Spec.Suspend = new(true)
	return "stops at the next saved state", nil
}

// NewResume returns the command that resumes runs.
func NewResume(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	var sweep string
	var most int
	command := edit{
		use: "resume", short: "Continue suspended runs",
		example: "  kubectl tinker resume arithmetic\n  kubectl tinker resume --sweep lr --max-running 2",
		long: "kubectl tinker resume continues suspended runs from their last saved state.\n\nWith --sweep, it resumes the " +
			"runs that kubectl tinker create --grid --max-running holds back, so that --max-running of " +
			"them\nrun at a time, and stays until none is held back.",
		apply: resumeRun,
	}.command(env, cluster)
	each := command.RunE
	command.Args = func(command *cobra.Command, args []string) error {
		switch {
		case sweep != "" && (len(args) > 0 || most < 1):
			return cli.Misused("--sweep resumes the runs of a sweep: leave out names of runs, and give --max-running NUMBER")
		case sweep == "" && most != 0:
			return cli.Misused("--max-running is for --sweep NAME")
		case sweep != "":
			return nil
		}
		return cli.Args(1, -1, "the name of a RUN")(command, args)
	}
	command.RunE = func(command *cobra.Command, args []string) error {
		if sweep == "" {
			return each(command, args)
		}
		connection, err := cluster.Connect()
		if err != nil {
			return err
		}
		return newFeeder(env, connection, connection.Namespace, sweep).feed(command.Context(), most)
	}
	command.Flags().StringVar(&sweep, "sweep", "", "resume the runs of the sweep `NAME` that are held back")
	command.Flags().IntVar(&most, "max-running", 0, "`NUMBER` of runs of the sweep that run at a time")
	return command
}

// resumeRun continues a suspended run.
func resumeRun(run *v1alpha1.TrainingRun) (string, error) {
	if !ptr.Deref(run.Spec.Suspend, false) {
		if c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionSuspended); c != nil &&
			c.Status == metav1.ConditionTrue && c.Reason == v1alpha1.ReasonBudgetReached {
			return "", fmt.Errorf("run %q is not suspended by its spec: %s", run.Name, output.Safe(c.Message))
		}
		return "is not suspended", nil
	}
	run.Spec.Suspend = new(false)
	delete(run.Annotations, annotationHeld)
	return "continues from its last saved state", nil
}

// NewRetry returns the command that tries failed runs again.
func NewRetry(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	return edit{
		use: "retry", short: "Try failed runs again", example: "  kubectl tinker retry arithmetic",
		long:  "kubectl tinker retry continues failed runs from their last usable checkpoint, with a new restart budget.",
		apply: retryRun,
	}.command(env, cluster)
}

// retryRun tries a failed run again.
func retryRun(run *v1alpha1.TrainingRun) (string, error) {
	if run.Status.State != v1alpha1.StateFailed {
		return "", fmt.Errorf("run %q has not failed, it is %s: kubectl tinker why %s says what it waits for", run.Name,
			run.Status.State, run.Name)
	}
	run.Spec.RetryGeneration = new(ptr.Deref(run.Spec.RetryGeneration, 0) + 1)
	if ptr.Deref(run.Spec.Suspend, false) {
		return "is suspended: it is tried again once kubectl tinker resume continues it", nil
	}
	return "is tried again from its last usable checkpoint", nil
}

// NewScale returns the command that sets the number of workers.
func NewScale(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	replicas := int32(-1)
	command := edit{
		use: "scale", short: "Set the number of a run's workers", example: "  kubectl tinker scale arithmetic --replicas 8",
		long:  "kubectl tinker scale sets how many worker pods a run has. Workers may come and go while the run trains.",
		apply: func(run *v1alpha1.TrainingRun) (string, error) { return scaleRun(run, replicas) },
	}.command(env, cluster)
	command.Flags().Int32Var(&replicas, "replicas", -1, "`NUMBER` of worker pods (required)")
	return command
}

// scaleRun sets the number of a run's workers.
func scaleRun(run *v1alpha1.TrainingRun, replicas int32) (string, error) {
	if replicas < 0 {
		return "", cli.Misused("--replicas is required, and at least 0")
	}
	if w := run.Spec.Rollouts.Workers; w != nil && *w == replicas {
		return fmt.Sprintf("has %s already", cli.Count(int(replicas), "worker")), nil
	}
	run.Spec.Rollouts.Workers = &replicas
	return fmt.Sprintf("is scaled to %s", cli.Count(int(replicas), "worker")), nil
}
