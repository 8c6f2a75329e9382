// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/attempt"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/controller/podstate"
	"github.com/tinker-operator/tinker-operator/internal/controller/poller"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// How long a learner may take to drain: one that answers, and one that does not.
const (
	drainLimit       = 10 * time.Minute
	drainUnreachable = 30 * time.Second
)

// overdue returns the ending of an attempt whose learner did not start, or makes no progress, in time; nil if the
// attempt continues. Only a fresh heartbeat can show that there is no progress, and only if it reports no problem as
// the cause.
func overdue(run *v1alpha1.TrainingRun, newest v1alpha1.Attempt, l observe.Learner, seen observe.State,
	now time.Time) *attempt.Ending {
	policy := run.Spec.FailurePolicy
	if _, running := learnerRunning(l.Pod); !running {
		return startOverdue(run, newest, l, seen, now)
	}
	if !seen.Heartbeat.Fresh(now) || seen.Heartbeat.Reply.Attempt != newest.Number {
		return nil
	}
	if _, any := seen.Heartbeat.Reply.Problem(); any || len(seen.Heartbeat.Reply.Unavailable) > 0 {
		return nil // Another attempt would wait for the same endpoint, repair or environment.
	}
	deadline := seconds(*policy.ProgressDeadlineSeconds)
	if idle := time.Duration(seen.Heartbeat.Reply.SecondsSinceProgress * float64(time.Second)); idle > deadline &&
		hasWorkers(seen) {
		return &attempt.Ending{Cause: contract.CauseStalled,
			Message: fmt.Sprintf("The learner has made no progress for %.0f seconds (failurePolicy.progressDeadlineSeconds).",
				deadline.Seconds())}
	}
	return nil
}

// startOverdue returns the ending of an attempt whose learner does not run in time; nil if the attempt continues. The
// ending has a reason if its pod waits for a repair.
func startOverdue(run *v1alpha1.TrainingRun, newest v1alpha1.Attempt, l observe.Learner, seen observe.State,
	now time.Time) *attempt.Ending {
	deadline, waits := seconds(*run.Spec.FailurePolicy.StartDeadlineSeconds), observe.LearnerWaits(run, l.Pod)
	if l.Pod != nil && seen.LearnerObstacle.NeedsAction() {
		waits = seen.LearnerObstacle // Another node may have the missing resources, so its deadline applies.
	}
	switch {
	case desired.SuspendedByOther(l.Job):
		return nil
	case l.Pod == nil && seen.LearnerObstacle.NeedsAction():
		return nil // The Job's controller tries again to create the pod, and another Job would have the same problem.
	case podstate.ImageMissing(l.Pod) && podstate.ReplaceIn(l.Pod, now) <= 0:
		return &attempt.Ending{Cause: contract.CauseStartTimeout, Reason: problem.ImagePullFailed,
			Message: waits.Message()}
	case now.Sub(waitsSince(newest, l, now)) <= deadline:
		return nil
	}
	end := &attempt.Ending{Cause: contract.CauseStartTimeout, Reason: waits.Code,
		Message: fmt.Sprintf("The learner did not run within %.0f seconds (failurePolicy.startDeadlineSeconds).",
			deadline.Seconds())}
	if waits.NeedsAction() {
		end.Message += " " + waits.Message()
	}
	return end
}

// endsByDeadline reports whether a plan ends an attempt because of the time since an observation, rather than because
// its container has ended. A manager that was cut off from the API server for that long may have missed much.
func endsByDeadline(run *v1alpha1.TrainingRun, seen observe.State, p plan) bool {
	if p.ending == nil || p.ending.Cause != contract.CauseStartTimeout && p.ending.Cause != contract.CauseNodeLost {
		return false
	}
	return podstate.Termination(seen.Learners[status.NewestAttempt(run)].Pod, desired.LearnerContainer) == nil
}

// waitsSince returns the time at which a learner that does not run began to wait. Its attempt may be older, if
// Kubernetes refused the pod or a queue suspended the Job for a while.
func waitsSince(newest v1alpha1.Attempt, l observe.Learner, now time.Time) time.Time {
	since := ptr.Deref(newest.StartTime, metav1.NewTime(now)).Time
	if l.Pod != nil && l.Pod.CreationTimestamp.After(since) {
		since = l.Pod.CreationTimestamp.Time
	}
	// A suspended Job gets a new start time when it is resumed.
	if l.Job != nil && l.Job.Status.StartTime != nil && l.Job.Status.StartTime.After(since) {
		since = l.Job.Status.StartTime.Time
	}
	return since
}

// hasWorkers reports whether a worker is ready. A learner without workers makes no progress, and that is not its fault.
func hasWorkers(seen observe.State) bool {
	return seen.Rollout != nil && ptr.Deref(seen.Rollout.Status.Ready, 0) > 0
}

// drainOverdue reports whether a drain has taken too long. A learner that runs has at least drainUnreachable from the
// first heartbeat of this manager, so that the start of a manager does not end a drain early.
func drainOverdue(l observe.Learner, seen observe.State, taken time.Duration, now time.Time) bool {
	if _, running := learnerRunning(l.Pod); !running {
		return taken >= drainUnreachable
	}
	asked := seen.Heartbeat.Since
	if asked.IsZero() || now.Sub(asked) < drainUnreachable {
		return false
	}
	return taken >= drainLimit || (taken >= drainUnreachable && seen.Heartbeat.Unanswered(now) >= drainUnreachable)
}

// untilDeadline returns the time until the next deadline of a learner.
func untilDeadline(run *v1alpha1.TrainingRun, l observe.Learner, seen observe.State, now time.Time) time.Duration {
	newest := run.Status.Attempts[0]
	if _, running := learnerRunning(l.Pod); !running {
		left := untilStartOverdue(run, newest, l, now)
		if missing := creating(newest, l, seen, now); missing > 0 {
			left = min(left, missing+time.Second)
		}
		if grace := graceLeft(run, newest, l, now); grace > 0 && observe.LearnerWaits(run, l.Pod).NeedsAction() {
			left = min(left, grace+time.Second)
		}
		if podstate.ImageMissing(l.Pod) {
			left = min(left, max(time.Second, podstate.ReplaceIn(l.Pod, now)))
		}
		return left
	}
	if seen.Heartbeat.Reply == nil || seen.Heartbeat.Err != nil {
		// The poller notifies of the first heartbeat without a reply, and not of later ones.
		return untilSilent(run, l, seen, now)
	}
	if !seen.Heartbeat.Fresh(now) {
		return maxRequeue
	}
	if seen.Heartbeat.Reply.AwaitsRepair() {
		return untilStalled(run)
	}
	idle := time.Duration(seen.Heartbeat.Reply.SecondsSinceProgress * float64(time.Second))
	left := seconds(*run.Spec.FailurePolicy.ProgressDeadlineSeconds) - idle
	if left < 0 {
		return maxRequeue // The deadline does not apply for now, and an event comes when it does again.
	}
	return min(maxRequeue, left+time.Second)
}

// untilStalled returns the time after which a wait that has just begun can count as stalled. A waiting run is
// reconciled at most every ten seconds, whatever its spec says.
func untilStalled(run *v1alpha1.TrainingRun) time.Duration {
	return min(maxRequeue, max(observe.LookInterval, seconds(*run.Spec.StalledAfterSeconds)+time.Second))
}

// untilStartOverdue returns the time until a learner that does not run could be overdue. If a queue or a quota keeps it
// from starting, it is not overdue even after the deadline; an event or the next look at the cluster then causes
// another reconcile.
func untilStartOverdue(run *v1alpha1.TrainingRun, newest v1alpha1.Attempt, l observe.Learner,
	now time.Time) time.Duration {
	left := waitsSince(newest, l, now).Add(seconds(*run.Spec.FailurePolicy.StartDeadlineSeconds)).Sub(now)
	if left < 0 || desired.SuspendedByOther(l.Job) {
		return maxRequeue
	}
	return min(maxRequeue, left+time.Second)
}

// silentFrom returns the time from which a running learner counts as unreachable unless it replies: once its heartbeats
// have had no reply for poller.FreshFor, and not before a new learner's first reply is due.
func silentFrom(l observe.Learner, seen observe.State, now time.Time) time.Time {
	from := now.Add(poller.FreshFor - seen.Heartbeat.Unanswered(now))
	if since, running := learnerRunning(l.Pod); running && seen.Heartbeat.Reply == nil &&
		since.Add(firstReplyLimit).After(from) {
		return since.Add(firstReplyLimit)
	}
	return from
}

func untilSilent(run *v1alpha1.TrainingRun, l observe.Learner, seen observe.State, now time.Time) time.Duration {
	left := silentFrom(l, seen, now).Sub(now)
	if left < 0 {
		return untilStalled(run)
	}
	return left + time.Second
}
