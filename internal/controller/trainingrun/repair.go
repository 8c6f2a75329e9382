// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/attempt"
	"github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// awaiting returns the newest attempt that awaits a repair, until a later attempt shows that the repair was made. It
// shows this by loading a state; if the API server refused the former attempt, by being created; and if the former pod
// could not start, by running.
func (v view) awaiting() *v1alpha1.Attempt {
	attempts := v.next.Attempts
	if len(attempts) == 0 || v.suspended() || v.finished() {
		return nil
	}
	latest := &attempts[0]
	if latest.CompletionTime == nil {
		if len(attempts) == 1 || latest.FromStep != nil {
			return nil
		}
		l := v.seen.Learners[latest.Number]
		exists := v.plan.start == 0 && l.Job != nil
		_, runs := learnerRunning(l.Pod)
		if latest = &attempts[1]; exists && latest.Reason == string(problem.CreateRefused) || runs && neverRan(*latest) {
			return nil
		}
	}
	if !attempt.AwaitsRepair(*latest) {
		return nil
	}
	return latest
}

// neverRan reports whether an attempt ended because its pod could not start, for example because its image was missing.
func neverRan(a v1alpha1.Attempt) bool { return a.Cause == string(contract.CauseStartTimeout) }

// isStalled reports whether the run has awaited a repair for longer than stalledAfterSeconds.
func (v view) isStalled() bool {
	if endpointProblem(v) != nil {
		return v.lasts(v1alpha1.ConditionProgressing) // The attempt may have made progress before.
	}
	a := v.awaiting() // The wait began with the first of the attempts that await the repair.
	return a != nil && a.StartTime != nil && v.lastsSince(a.StartTime.Time)
}

// stall returns the condition kind, Stalled, with the repair that the run awaits.
func (v view) stall(kind string) status.Condition {
	if c := endpointProblem(v); c != nil {
		return c.As(kind, metav1.ConditionTrue)
	}
	if a := v.awaiting(); neverRan(*a) {
		return status.Show(kind, metav1.ConditionTrue, told(*a))
	}
	return v.as(kind, v1alpha1.ConditionProgressing, metav1.ConditionTrue)
}

// endpointProblem is the Progressing condition of a run that waits until a person has repaired a refusal by the
// endpoint or a missing feature; nil if the run does not wait for that.
func endpointProblem(v view) *status.Condition {
	a := v.awaiting()
	if a == nil || a.Cause == string(contract.CauseRefused) || neverRan(*a) {
		return nil
	}
	found := problem.Problem{Code: problem.Code(a.Reason), Evidence: a.Message}
	if found.Code == problem.KeyRefused {
		found = keyRefused(v.run)
	}
	found = v.atEndpoint(a.Number, found)
	return new(not(v1alpha1.ConditionProgressing, endpoint.Trimmed(found)))
}

// atEndpoint returns a problem with the repair for the endpoint of the run, by the fields that were changed since an
// attempt began.
func (v view) atEndpoint(number int32, found problem.Problem) problem.Problem {
	return status.AtEndpoint(v.run, desired.PendingChanges(v.run, v.seen.Learners[number].Job), found)
}

// told returns the problem of an attempt whose message already has the sentences of the problem table.
func told(a v1alpha1.Attempt) problem.Problem {
	return problem.Problem{Code: problem.Code(a.Reason), Told: a.Message}
}

// learnerRefused says why the API server refuses to create the learner. A manager that has just started has not tried
// to create it, so the message of the earlier manager stays.
func (v view) learnerRefused() status.Condition {
	const kind = v1alpha1.ConditionPodsReady
	if found := refusedLearner(v.seen); found.Code != "" {
		return not(kind, found)
	}
	for _, from := range []string{kind, v1alpha1.ConditionProgressing} {
		if v.codeBefore(from) == problem.CreateRefused && !v.answeredBefore() {
			return v.asBefore(from).As(kind, metav1.ConditionFalse)
		}
	}
	return not(kind, problem.Problem{Code: problem.CreateRefused, Evidence: v.awaiting().Message,
		Field: "podOverrides[target=Learner]"})
}

// betweenAttempts is a condition while the next attempt waits: why the last one could not start, if a person has to
// repair that.
func betweenAttempts(v view, kind, reason, message string) status.Condition {
	if a := v.awaiting(); a != nil && neverRan(*a) {
		return not(kind, told(*a))
	}
	return status.False(kind, reason, message)
}

// learnerStarting is the condition while the next attempt is to be started.
func (v view) learnerStarting() status.Condition {
	return betweenAttempts(v, v1alpha1.ConditionPodsReady, v1alpha1.ReasonStarting,
		"The learner's pod has not been made yet.")
}

// learnerObstacle returns the problem that keeps the newest attempt's learner from running.
func (v view) learnerObstacle() problem.Problem {
	pod := v.seen.Learners[status.NewestAttempt(v.run)].Pod
	if pod == nil && desired.SuspendedByOther(v.seen.Learners[status.NewestAttempt(v.run)].Job) {
		return jobSuspended
	}
	if v.seen.LearnerObstacle.NeedsAction() {
		return v.seen.LearnerObstacle
	}
	o := observe.LearnerWaits(v.run, pod)
	if a := v.awaiting(); !o.NeedsAction() && a != nil && neverRan(*a) {
		return told(*a)
	}
	return o
}

// learnerNeedsAction reports whether the learner's pod has required intervention for stalledAfterSeconds: a node may be
// added, a quota be freed, a Secret be created or an image be pushed before that.
func learnerNeedsAction(v view) bool {
	attempt := v.attempt()
	if attempt == nil || attempt.CompletionTime != nil || v.plan.start > 0 || v.finished() {
		return false
	}
	l := v.seen.Learners[attempt.Number]
	if _, running := learnerRunning(l.Pod); running || !v.learnerObstacle().NeedsAction() {
		return false
	}
	return graceLeft(v.run, *attempt, l, v.now) == 0
}

// workersAwaitRepair reports whether the run waits for workers which Kubernetes refuses or cannot start.
func (v view) workersAwaitRepair() bool {
	obstacle, refused := v.workersRefused()
	c := meta.FindStatusCondition(v.next.Conditions, v1alpha1.ConditionProgressing)
	return refused && c.Status == metav1.ConditionFalse && v.code(c.Type) == obstacle.Code
}

// lasts reports whether a condition has been False for at least stalledAfterSeconds.
func (v view) lasts(kind string) bool {
	since, is := status.Since(v.next.Conditions, kind, metav1.ConditionFalse)
	return is && v.lastsSince(since)
}

func (v view) lastsSince(since time.Time) bool {
	return v.now.Sub(since) >= seconds(*v.run.Spec.StalledAfterSeconds)
}
