// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/controller/resolve"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// nextCheck is the result of a check whether the next attempt of a run could start, with the inputs of the check.
type nextCheck struct {
	of      string
	problem *problem.Problem
}

// checkNext makes the run file of the next attempt before that attempt is due, once for each version of its inputs, and
// returns the problem that prevents the file. A user who changes a run in progress thus sees the problem at once,
// instead of when the learner is next evicted.
func (r *Reconciler) checkNext(ctx context.Context, run *v1alpha1.TrainingRun, seen observe.State,
	p plan) *problem.Problem {
	if run.Status.StartTime == nil || status.RunFinished(run) || p.final != nil || p.blocked != nil || p.terminating {
		return nil
	}
	if p.next != nil {
		run = run.DeepCopy()
		run.Status = *p.next
	}
	of := madeFrom(run, seen)
	if known := r.checks.Get(run); known.of == of {
		return known.problem
	}
	files, err := observe.ReadRunFiles(ctx, r.Live, run)
	if _, unreadable := errors.AsType[*observe.RunFileError](err); err != nil && !unreadable {
		ctrl.LoggerFrom(ctx).Info("the next attempt is not checked", "err", err.Error())
		return nil
	}
	found := resolve.UnreadableFile(err)
	if err == nil {
		found = r.nextProblem(run, seen, files)
	}
	r.checks.Set(run, nextCheck{of, found})
	return found
}

// nextProblem returns the problem that prevents the run file of the next attempt; nil if there is none.
func (r *Reconciler) nextProblem(run *v1alpha1.TrainingRun, seen observe.State,
	files observe.RunFiles) *problem.Problem {
	input, blocked := r.fileInput(run, seen, files, status.NewestAttempt(run)+1)
	if blocked != nil {
		return blocked
	}
	_, err := desired.File(input)
	if err == nil {
		return nil
	}
	return resolve.FileProblem(err)
}

// madeFrom identifies the inputs of a run file.
func madeFrom(run *v1alpha1.TrainingRun, seen observe.State) string {
	var of strings.Builder
	fmt.Fprintf(&of, "%d %d %v %v %v", run.Generation, status.NewestAttempt(run), status.SettingsFixed(run),
		observe.HasStep(run), run.Status.CompletionTime)
	if p := seen.Endpoint.Problem; p != nil {
		fmt.Fprintf(&of, " %s %s", p.Code, p.Evidence)
	}
	if len(seen.Endpoint.Prices) > 0 {
		fmt.Fprintf(&of, " %v", seen.Endpoint.Prices)
	}
	for _, name := range slices.Sorted(maps.Keys(seen.Environments)) {
		env := seen.Environments[name]
		fmt.Fprintf(&of, " %s %s %d %d %s", name, env.UID, env.Generation, ptr.Deref(env.Status.ObservedGeneration, 0),
			env.Status.Digest)
		for _, c := range env.Status.Conditions {
			fmt.Fprintf(&of, " %s=%s", c.Type, c.Status)
		}
	}
	return of.String()
}

// unusable returns the condition Accepted of a run whose next attempt could not start; nil if no such problem is known.
func (v view) unusable() *status.Condition {
	p := v.plan.unusable
	if p == nil || v.finished() {
		return nil
	}
	c := not(v1alpha1.ConditionAccepted, *p)
	if a := v.attempt(); a != nil && a.CompletionTime == nil && v.seen.Endpoint.Problem == nil {
		c.Message += " The learner continues meanwhile."
	}
	c.Message += " The next attempt needs the repair."
	return &c
}
