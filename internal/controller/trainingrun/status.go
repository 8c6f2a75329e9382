// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/budget"
	"github.com/tinker-operator/tinker-operator/internal/controller/ending"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	spent "github.com/tinker-operator/tinker-operator/internal/desired/budget"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// Bounds of an attempt's entry.
const (
	maxAttempts      = 10
	maxAttemptReason = 64
)

// computeStatus gives the status that a run should have once the plan is carried out. It does not change
// the run.
func computeStatus(run *v1alpha1.TrainingRun, seen observe.State, p plan, now time.Time) v1alpha1.TrainingRunStatus {
	next := *run.Status.DeepCopy()
	switch {
	case p.next != nil:
		next = *p.next.DeepCopy()
	case !status.RunFinished(run):
		next = withHeartbeat(run, seen, now)
	}
	next.ObservedGeneration = ptr.To(run.Generation)
	next.ObservedRetry = ptr.To(*run.Spec.Retry)
	if p.start > 0 {
		recordAttempt(&next, p, now)
	}
	if p.final != nil {
		next.CompletionTime = ptr.To(metav1.NewTime(now))
	}
	if job := seen.Learners[status.NewestAttempt(run)].Job; status.AttemptEnded(run) || p.ending != nil {
		next.PendingChanges = nil
	} else if job != nil { // Otherwise the learner, whose Job is deleted, ends.
		next.PendingChanges = desired.PendingChanges(run, job)
	}
	next.WorkerSelector = desired.WorkerSelector(run)
	next.Workers, next.ReadyWorkers = ptr.To(seen.WorkersActive()), ptr.To(seen.WorkersReady())
	setConditions(&next, view{run: run, next: &next, seen: seen, plan: p, now: now})
	next.SettingsFixed = settingsFixed(run, &next, seen, p.ending)
	status.Fit(&next)
	return next
}

// recordAttempt records an attempt, and with the first what the run is fixed to.
func recordAttempt(next *v1alpha1.TrainingRunStatus, p plan, now time.Time) {
	at := metav1.NewTime(now)
	if next.StartTime == nil {
		next.StartTime = &at
	}
	attempts := append([]v1alpha1.Attempt{{Number: p.start, StartTime: &at}}, next.Attempts...)
	next.Attempts = attempts[:min(len(attempts), maxAttempts)]
	next.Restarts = ptr.To(restarts(next))
	next.FormatVersion = ptr.To(int32(p.file.Version))
	next.Environments = pinnedStatus(next.Environments, p.file)
	if p.file.Fixed.Algorithm == nil {
		return
	}
	next.Steps = ptr.To(p.file.Fixed.Algorithm.Steps)
	if next.Step == nil {
		next.Step, next.Progress = ptr.To[int64](0), fmt.Sprintf("0/%d", *next.Steps)
	}
}

// restarts is the count with the newest attempt, if that follows on one that ended by itself.
func restarts(next *v1alpha1.TrainingRunStatus) int32 {
	count := ptr.Deref(next.Restarts, 0)
	if len(next.Attempts) < 2 {
		return count
	}
	former := next.Attempts[1]
	drained := former.Cause == string(contract.CauseDrained) && (former.FromStep == nil || askedToStop(*next))
	if drained || former.Reason == v1alpha1.ReasonSettingsChanged || former.Cause == string(contract.CauseRefused) {
		return count
	}
	return count + 1
}

// askedToStop says that a run was to be suspended when its status was written.
func askedToStop(s v1alpha1.TrainingRunStatus) bool {
	c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionSuspended)
	return c != nil && c.Status != metav1.ConditionFalse
}

// pinnedStatus lists the environments of a run file and keeps what is known of each.
func pinnedStatus(before []v1alpha1.EnvironmentStatus, file *contract.RunFile) []v1alpha1.EnvironmentStatus {
	known := map[string]v1alpha1.EnvironmentStatus{}
	for _, e := range before {
		known[e.Name] = e
	}
	var listed []v1alpha1.EnvironmentStatus
	add := func(e contract.Environment) {
		if slices.ContainsFunc(listed, func(l v1alpha1.EnvironmentStatus) bool { return l.Name == e.Name }) {
			return
		}
		entry := known[e.Name]
		var tasks int64
		for _, s := range e.Splits {
			tasks += s.Tasks
		}
		entry.Name, entry.Digest, entry.Tasks = e.Name, e.Digest, ptr.To(tasks)
		listed = append(listed, entry)
	}
	for _, e := range file.Fixed.Environments {
		add(e)
	}
	if file.Evaluation != nil {
		for _, e := range file.Evaluation.Environments {
			add(e)
		}
	}
	slices.SortFunc(listed, func(a, b v1alpha1.EnvironmentStatus) int { return cmp.Compare(a.Name, b.Name) })
	return listed
}

// withHeartbeat returns the status with the newest attempt's heartbeat in it.
func withHeartbeat(run *v1alpha1.TrainingRun, seen observe.State, now time.Time) v1alpha1.TrainingRunStatus {
	next := *run.Status.DeepCopy()
	if reply := ownReply(run, seen); reply != nil {
		report(&next, reply.Progress, now)
	}
	return next
}

// withEnding is the status with the newest attempt ended.
func withEnding(run *v1alpha1.TrainingRun, seen observe.State, end ending.Ending, now time.Time) v1alpha1.TrainingRunStatus {
	next := withHeartbeat(run, seen, now)
	if end.Progress != nil {
		former := next.Checkpoints
		report(&next, *end.Progress, now)
		status.KeepOlder(&next, former)
	}
	if budget.CountsAsFailure(string(end.Cause)) {
		next.FailuresSinceCheckpoint = ptr.To(ptr.Deref(next.FailuresSinceCheckpoint, 0) + 1)
	}
	newest := &next.Attempts[0]
	newest.Cause = string(end.Cause)
	newest.Reason = status.Trim(end.Reason, maxAttemptReason)
	newest.Message = status.Trim(end.Message, ending.MaxMessage)
	next.ActiveSeconds = ptr.To(ptr.Deref(next.ActiveSeconds, 0) + int64(spent.Lasted(*newest, now).Round(time.Second).Seconds()))
	newest.CompletionTime = ptr.To(metav1.NewTime(now))
	next.Attempts = budget.Join(next.Attempts)
	return next
}

// ownReply is the newest learner's reply, if it belongs to this run and to an attempt in progress.
func ownReply(run *v1alpha1.TrainingRun, seen observe.State) *contract.HeartbeatReply {
	reply := seen.Heartbeat.Reply
	if reply == nil || status.AttemptEnded(run) || reply.RunUID != string(run.UID) || reply.Attempt != status.NewestAttempt(run) {
		return nil
	}
	return reply
}

// report writes a progress into the status, and into the newest attempts' entries. A checkpoint of a further
// step refills the restart budget.
func report(next *v1alpha1.TrainingRunStatus, p contract.Progress, now time.Time) {
	before := latestStep(next)
	status.Report(next, p, now)
	if latestStep(next) > before {
		next.FailuresSinceCheckpoint = ptr.To[int32](0)
	}
	if p.Phase == contract.PhaseOpening && p.Lineage == "" {
		return
	}
	newest := &next.Attempts[0]
	newest.FromStep, newest.ToStep = ptr.To(p.FromStep), ptr.To(max(p.Step, p.FromStep))
	if p.ColdOptimizer {
		newest.ColdOptimizer = ptr.To(true)
	}
	if p.LostVersions > 0 {
		newest.LostVersions = ptr.To(p.LostVersions)
	}
	// A learner that was killed could not report how far it had come; the step at which its successor starts shows it.
	if len(next.Attempts) > 1 {
		previous := &next.Attempts[1]
		previous.ToStep = ptr.To(max(ptr.Deref(previous.ToStep, 0), p.FromStep))
	}
}

func latestStep(s *v1alpha1.TrainingRunStatus) int64 {
	if s.LatestCheckpoint == nil {
		return 0
	}
	return s.LatestCheckpoint.Step
}
