// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/heartbeat"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// Some waits have no reported cause: for example, a NetworkPolicy drops the packets of a pod, or a node lacks the
// driver for a volume. Such a wait passes by itself or lasts forever, and only its length shows which.

// silence returns the problem of a learner that runs and has no fresh reply. The problem stays the same for as long as
// the silence lasts.
func (v view) silence() problem.Problem {
	if unread, ok := errors.AsType[*heartbeat.ReplyError](v.seen.Heartbeat.Err); ok {
		return problem.Problem{Code: problem.ReplyUnusable, Evidence: unread.Problem}
	}
	return problem.Problem{Code: problem.Unreachable}
}

// awaitsAnswer reports whether a learner has not answered for longer than stalledAfterSeconds.
func (v view) awaitsAnswer() bool {
	c := meta.FindStatusCondition(v.next.Conditions, v1alpha1.ConditionPodsReady)
	since, silent := status.Since(v.next.Conditions, v1alpha1.ConditionPodsReady, metav1.ConditionUnknown)
	return silent && c.Reason == v1alpha1.ReasonUnreachable && v.isProgressing(metav1.ConditionUnknown, c.Reason) &&
		v.lastsSince(since)
}

// workersAwaited returns the problem of a learner that waits for workers.
func (v view) workersAwaited() problem.Problem {
	switch {
	case *v.run.Spec.Rollouts.Workers == 0:
		return problem.Problem{Code: problem.ScaledToZero}
	case v.workersQueued():
		return workersSuspended
	default:
		return problem.Problem{Code: problem.WorkersAwaited}
	}
}

func (v view) workersQueued() bool { return desired.SuspendedByOther(v.seen.Rollout) }

// awaitsWorkers reports whether no worker has been ready for longer than a pod may take to start, and nothing known
// will change that.
func (v view) awaitsWorkers() bool {
	code := v.code(v1alpha1.ConditionProgressing)
	if code != problem.WorkersAwaited && code != problem.ScaledToZero || v.workersQueued() || v.seen.Rollout == nil {
		return false
	}
	since, _ := status.Since(v.next.Conditions, v1alpha1.ConditionProgressing, metav1.ConditionFalse)
	began, _ := learnerRunning(v.seen.Learners[status.NewestAttempt(v.run)].Pod)
	// A suspended Job gets a new start time when it is resumed.
	for _, later := range []time.Time{began, v.seen.Rollout.CreationTimestamp.Time,
		startOf(v.seen.Rollout.Status.StartTime)} {
		if later.After(since) {
			since = later
		}
	}
	return v.lastsSince(since) && v.now.Sub(since) >= seconds(*v.run.Spec.FailurePolicy.StartDeadlineSeconds)
}

// learnerServes reports whether the learner has answered heartbeats for stalledAfterSeconds, and is not opening: it
// answers the workers that reach it.
func (v view) learnerServes() bool {
	newest, reply := v.attempt(), v.reply()
	return reply != nil && newest.AnswerTime != nil && v.lastsSince(newest.AnswerTime.Time) &&
		reply.Progress.Phase != contract.PhaseOpening
}

func startOf(at *metav1.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.Time
}

// neverStarts returns the problem of a run whose learner did not start in time twice in a row, without a known cause;
// the zero value otherwise.
func (v view) neverStarts() problem.Problem {
	attempts := v.next.Attempts
	if len(attempts) > 0 && attempts[0].CompletionTime == nil {
		if _, running := learnerRunning(v.seen.Learners[attempts[0].Number].Pod); running && v.plan.start == 0 {
			return problem.Problem{}
		}
		attempts = attempts[1:]
	}
	if len(attempts) < 2 || v.finished() || v.suspended() {
		return problem.Problem{}
	}
	for _, a := range attempts[:2] {
		if a.Cause != string(contract.CauseStartTimeout) || a.Reason != "" {
			return problem.Problem{}
		}
	}
	return problem.Problem{Code: problem.LearnerNotStarting, Evidence: fmt.Sprintf("attempts %d and %d: %s",
		attempts[1].Number, attempts[0].Number, attempts[0].Message)}
}

// isProgressing reports whether the condition Progressing has the given status and reason.
func (v view) isProgressing(is metav1.ConditionStatus, reason string) bool {
	c := meta.FindStatusCondition(v.next.Conditions, v1alpha1.ConditionProgressing)
	return c.Status == is && c.Reason == reason
}

// hasWorkers reports whether the run has workers, or its former workers still exist.
func (v view) hasWorkers() bool { return desired.HasWorkers(v.run) || v.seen.Rollout != nil }
