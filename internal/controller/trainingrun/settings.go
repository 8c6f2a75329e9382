// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/attempt"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// settingsChanged says that what decides the weights, or the number of steps, was changed since the newest attempt's
// learner was created, while both may still be changed in any way. Of a learner whose Job is deleted already, the
// status has what was changed.
func settingsChanged(run *v1alpha1.TrainingRun, seen observe.State) bool {
	if observe.SettingsFixed(run) {
		return false
	}
	job := seen.Learners[status.NewestAttempt(run)].Job
	if job == nil {
		return slices.ContainsFunc(run.Status.PendingChanges, desired.RestartsUnfixed)
	}
	return slices.ContainsFunc(desired.PendingChanges(run, job), desired.RestartsUnfixed)
}

// explainFinal says of a run that completes that its spec was changed too late.
func explainFinal(run *v1alpha1.TrainingRun, seen observe.State, final *attempt.Final) {
	if final.Condition == v1alpha1.ConditionComplete && settingsChanged(run, seen) {
		final.Message += " What decides the weights was changed too late: the results are those of the former spec."
	}
}

// settingsFixed says whether what decides the weights can no longer be changed: the newest attempt's own learner, which
// was created with what the spec has, reports a committed step or the end of the run. It is written under the version
// of the run that was compared, so that a change which comes at the same time makes the write fail.
func settingsFixed(run *v1alpha1.TrainingRun, next *v1alpha1.TrainingRunStatus, seen observe.State,
	end *attempt.Ending) *bool {
	if next.StartTime == nil {
		return nil
	}
	job := seen.Learners[status.NewestAttempt(run)].Job
	switch {
	// by a former version of the operator, which fixed them at the start
	case run.Status.StartTime != nil && run.Status.SettingsFixed == nil:
		return fixedAtStart(run, next, job)
	case observe.SettingsFixed(run):
		return ptr.To(true)
	case !commits(run, seen, end):
		return ptr.To(false)
	}
	if job == nil {
		return ptr.To(end != nil && end.Cause == contract.CauseCompleted && !settingsChanged(run, seen))
	}
	_, known := desired.ChangedSettings(run, job.Annotations)
	return ptr.To(known && !settingsChanged(run, seen))
}

// fixedAtStart is settingsFixed of a run that a former version of the operator started. While that version's learner
// runs, whose Job does not say what it was created with, nothing is written before the first step: the API server then
// refuses changes, which could not be compared with what that step was made of.
func fixedAtStart(run *v1alpha1.TrainingRun, next *v1alpha1.TrainingRunStatus, job *batchv1.Job) *bool {
	if ptr.Deref(next.Step, 0) > 0 || status.RunFinished(run) {
		return ptr.To(true)
	}
	if job != nil && !status.AttemptEnded(run) {
		if _, known := desired.ChangedSettings(run, job.Annotations); !known {
			return nil
		}
	}
	return ptr.To(false)
}

// commits says that the newest attempt's learner reports a committed step, or has completed the run.
func commits(run *v1alpha1.TrainingRun, seen observe.State, end *attempt.Ending) bool {
	if end != nil {
		return end.Cause == contract.CauseCompleted || end.Progress != nil && end.Progress.Step > 0
	}
	reply := ownReply(run, seen)
	return reply != nil && reply.Progress.Step > 0
}
