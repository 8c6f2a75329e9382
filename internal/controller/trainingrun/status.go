// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/attempt"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// computeStatus returns the status that a run should have once the plan is executed. It does not change
// the run.
func computeStatus(run *v1alpha1.TrainingRun, seen observe.State, p plan, now time.Time) v1alpha1.TrainingRunStatus {
	next := *run.Status.DeepCopy()
	switch {
	case p.next != nil:
		next = *p.next.DeepCopy()
	case !status.RunFinished(run):
		next = withHeartbeat(run, seen, now)
	}
	next.RunUID = ownerOfStatus(run, p)
	next.ObservedGeneration = ptr.To(run.Generation)
	next.ObservedRetryGeneration = ptr.To(*run.Spec.RetryGeneration)
	if p.start > 0 {
		attempt.Record(&next, run.Spec, p.file, p.start, now)
	}
	if p.final != nil {
		next.CompletionTime = ptr.To(metav1.NewTime(now))
	}
	if job := seen.Learners[status.NewestAttempt(run)].Job; status.AttemptEnded(run) || p.ending != nil {
		next.PendingChanges = nil
	} else if job != nil { // Otherwise the learner, whose Job is deleted, ends.
		next.PendingChanges = desired.PendingChanges(run, job)
	}
	if seen.Diagnosed {
		next.Diagnoses = status.Diagnoses(seen.Findings)
	}
	next.Queue = queueStatus(run, seen)
	next.WorkerSelector = desired.WorkerSelector(run)
	next.Workers, next.ReadyWorkers = ptr.To(seen.WorkersActive()), ptr.To(seen.WorkersReady())
	setConditions(&next, view{run: run, next: &next, seen: seen, plan: p, now: now})
	next.SettingsFixed = settingsFixed(run, &next, seen, p.ending)
	if !status.RunFinished(run) {
		markOutdated(run, &next, seen.Environments)
	}
	status.Fit(&next)
	return next
}

// markOutdated notes which environments of a run whose settings are fixed have another spec than the run began with. An
// environment that is being probed has no digest of its new spec yet.
func markOutdated(run *v1alpha1.TrainingRun, next *v1alpha1.TrainingRunStatus,
	environments map[string]*v1alpha1.RewardEnvironment) {
	for _, use := range run.Spec.Environments {
		i := slices.IndexFunc(next.Environments, func(e v1alpha1.EnvironmentStatus) bool { return e.Name == use.Name })
		if i < 0 {
			continue
		}
		e, env := &next.Environments[i], environments[desired.RefName(use.EnvironmentUse)]
		e.Outdated = nil
		if ptr.Deref(next.SettingsFixed, false) && env != nil && env.Status.Digest != "" && e.Digest != "" &&
			env.Status.Digest != e.Digest && ptr.Deref(env.Status.ObservedGeneration, 0) == env.Generation {
			e.Outdated = ptr.To(true)
		}
	}
}

// withHeartbeat returns the status with the newest attempt's heartbeat in it.
func withHeartbeat(run *v1alpha1.TrainingRun, seen observe.State, now time.Time) v1alpha1.TrainingRunStatus {
	next := *run.Status.DeepCopy()
	if reply := ownReply(run, seen); reply != nil {
		attempt.Report(&next, reply.Progress, now)
	}
	return next
}

// withEnding is the status with the newest attempt ended.
func withEnding(run *v1alpha1.TrainingRun, seen observe.State, end attempt.Ending,
	now time.Time) v1alpha1.TrainingRunStatus {
	next := withHeartbeat(run, seen, now)
	if end.Progress != nil {
		former := next.Checkpoints
		attempt.Report(&next, *end.Progress, now)
		status.KeepOlder(&next, former, end.Progress.Checkpoints)
	}
	attempt.End(&next, end, now)
	return next
}

// ownReply is the newest learner's reply, if it belongs to this run and to an attempt in progress.
func ownReply(run *v1alpha1.TrainingRun, seen observe.State) *contract.HeartbeatReply {
	reply := seen.Heartbeat.Reply
	if reply == nil || status.AttemptEnded(run) || reply.RunUID != string(run.UID) ||
		reply.Attempt != status.NewestAttempt(run) {
		return nil
	}
	return reply
}
