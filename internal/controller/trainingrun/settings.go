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

// settingsChanged reports whether the settings that decide the weights, or the number of steps, have changed since the
// newest attempt's learner was created, while both may still change in any way. If the learner's Job is already
// deleted, the status has the changes.
func settingsChanged(run *v1alpha1.TrainingRun, seen observe.State) bool {
	if status.SettingsFixed(run) {
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

// settingsFixed reports whether the settings that decide the weights can no longer be changed: the newest attempt's own
// learner, which was created with the settings of the spec, reports a committed step or the end of the run. The result
// is written under the resource version of the run that was compared, so that the write fails if the run changes at the
// same time.
func settingsFixed(run *v1alpha1.TrainingRun, next *v1alpha1.TrainingRunStatus, seen observe.State,
	end *attempt.Ending) *bool {
	if next.StartTime == nil {
		return nil
	}
	job := seen.Learners[status.NewestAttempt(run)].Job
	switch {
	// A former version of the operator started the run, and fixed its settings at the start.
	case run.Status.StartTime != nil && run.Status.SettingsFixed == nil:
		return fixedAtStart(run, next, job)
	case status.SettingsFixed(run):
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

// fixedAtStart is settingsFixed for a run that a former version of the operator started. The Job of that version's
// learner has no record of its settings. While that learner runs, status.settingsFixed stays unset until the first
// step. The API server then refuses changes of the settings, since they could not be compared with the settings of that
// step.
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

// commits reports whether the newest attempt's learner reports a committed step, or has completed the run.
func commits(run *v1alpha1.TrainingRun, seen observe.State, end *attempt.Ending) bool {
	if end != nil {
		return end.Cause == contract.CauseCompleted || end.Progress != nil && end.Progress.Step > 0
	}
	reply := ownReply(run, seen)
	return reply != nil && reply.Progress.Step > 0
}
