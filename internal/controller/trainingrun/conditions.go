// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/attempt"
	"github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// firstReplyLimit is the time that a running learner has to answer for the first time.
const firstReplyLimit = 30 * time.Second

// view has the inputs of conditions.
type view struct {
	run  *v1alpha1.TrainingRun
	next *v1alpha1.TrainingRunStatus
	seen observe.State
	plan plan
	now  time.Time
}

// setConditions sets all conditions and the state. The order is that in which they build on one another.
func setConditions(next *v1alpha1.TrainingRunStatus, v view) {
	setAnswerTime(v)
	for _, c := range []func(view) status.Condition{
		completeCondition, failedCondition, suspendedCondition,
		acceptedCondition, podsCondition, progressingCondition, stalledCondition, readyCondition,
	} {
		status.Set(&next.Conditions, &next.Codes, v.run.Generation, v.now, c(v))
	}
	setRecording(next, v)
	next.Conditions = slices.DeleteFunc(next.Conditions, func(c metav1.Condition) bool {
		return !slices.Contains(conditionTypes, c.Type) // Another version of the operator wrote it.
	})
	next.Codes = slices.DeleteFunc(next.Codes, func(c v1alpha1.ConditionCode) bool {
		return meta.FindStatusCondition(next.Conditions, c.Condition) == nil
	})
	next.State = stateOf(v)
}

// conditionTypes are the conditions of a run.
var conditionTypes = []string{
	v1alpha1.ConditionAccepted, v1alpha1.ConditionPodsReady, v1alpha1.ConditionProgressing,
	v1alpha1.ConditionRecording, v1alpha1.ConditionReady, v1alpha1.ConditionStalled, v1alpha1.ConditionSuspended,
	v1alpha1.ConditionComplete, v1alpha1.ConditionFailed,
}

// is reports whether a condition that is already set is True.
func (v view) is(kind string) bool { return status.IsTrue(v.next.Conditions, kind) }

// as returns a copy of the condition from, which is already set, with the type kind and the status is.
func (v view) as(kind, from string, is metav1.ConditionStatus) status.Condition {
	return status.Find(v.next.Conditions, v.next.Codes, from).As(kind, is)
}

// code returns the code of the problem that a condition shows, if the condition is already set; empty if there is none.
func (v view) code(kind string) problem.Code { return status.CodeOf(v.next.Codes, kind) }

// codeBefore returns the code of the problem that a condition showed in the last written status; empty if there is
// none.
func (v view) codeBefore(kind string) problem.Code { return status.CodeOf(v.run.Status.Codes, kind) }

// not returns a condition that is False because of a problem.
func not(kind string, found problem.Problem) status.Condition {
	return status.Show(kind, metav1.ConditionFalse, found)
}

func (v view) finished() bool {
	return v.is(v1alpha1.ConditionComplete) || v.is(v1alpha1.ConditionFailed)
}

// attempt is the newest attempt; nil before the first.
func (v view) attempt() *v1alpha1.Attempt {
	if len(v.next.Attempts) == 0 {
		return nil
	}
	return &v.next.Attempts[0]
}

// reply returns the newest attempt's heartbeat, if it is fresh.
func (v view) reply() *contract.HeartbeatReply {
	if v.plan.start > 0 || v.plan.ending != nil || !v.seen.Heartbeat.Fresh(v.now) {
		return nil
	}
	return ownReply(v.run, v.seen)
}

func completeCondition(v view) status.Condition {
	return finalCondition(v, v1alpha1.ConditionComplete, notComplete)
}

func failedCondition(v view) status.Condition {
	return finalCondition(v, v1alpha1.ConditionFailed, notFailed)
}

func finalOf(f attempt.Final) status.Condition {
	c := status.True(f.Condition, f.Reason(), f.Message)
	c.Code = f.Code
	return c
}

const (
	notComplete = "The run has not completed."
	notFailed   = "The run has not failed."
)

// finalCondition returns Complete or Failed. A condition that is True stays True, unless the run continues.
func finalCondition(v view, kind, otherwise string) status.Condition {
	if f := v.plan.final; f != nil && f.Condition == kind {
		return finalOf(*f)
	}
	if v.is(kind) {
		return v.as(kind, kind, metav1.ConditionTrue)
	}
	return status.False(kind, v1alpha1.ReasonAsExpected, otherwise)
}

func suspendedCondition(v view) status.Condition {
	const kind = v1alpha1.ConditionSuspended
	switch attempt := v.attempt(); {
	case v.finished():
		return status.False(kind, v1alpha1.ReasonFinished, "The run is over.")
	case !v.suspended() && v.queued() && attempt != nil && attempt.CompletionTime == nil:
		return status.Unknown(kind, v1alpha1.ReasonDraining, "The learner is asked to stop at a saved state.")
	case !v.suspended():
		return status.False(kind, v1alpha1.ReasonAsExpected, "The spec does not ask to suspend.")
	case attempt != nil && attempt.CompletionTime == nil:
		return status.Unknown(kind, v1alpha1.ReasonDraining, "The learner is asked to stop at a saved state.")
	case v.seen.Rollout != nil || v.seen.Learners[status.NewestAttempt(v.run)].Job != nil:
		return status.Unknown(kind, v1alpha1.ReasonDraining, "The pods are being deleted."+v.lingering())
	case !*v.run.Spec.Suspend:
		return status.True(kind, v1alpha1.ReasonBudgetReached, v.budgetReached())
	case v.run.Spec.Mode == v1alpha1.ModeEvaluate:
		return status.True(kind, v1alpha1.ReasonSuspended,
			"The run is suspended until suspend is false; then it evaluates again.")
	default:
		return status.True(kind, v1alpha1.ReasonSuspended,
			"The run is suspended at its newest checkpoint until suspend is false.")
	}
}

// podsCondition returns PodsReady with the problem that keeps the learner from answering, or else the problem that
// keeps workers from being ready.
func podsCondition(v view) status.Condition {
	if c := learnerCondition(v); c.Status != metav1.ConditionTrue {
		return c
	}
	return rolloutsCondition(v)
}

func learnerCondition(v view) status.Condition {
	const kind = v1alpha1.ConditionPodsReady
	switch attempt := v.attempt(); {
	case v.finished():
		return status.False(kind, v1alpha1.ReasonFinished, "The run is over.")
	case v.is(v1alpha1.ConditionSuspended):
		return status.False(kind, v1alpha1.ReasonSuspended, "The run is suspended.")
	case v.awaitsAdmission():
		return v.queueCondition(kind)
	case attempt == nil:
		return status.False(kind, v1alpha1.ReasonNotStarted, "No attempt has been made.")
	case attempt.CompletionTime != nil && v.plan.terminating:
		return status.False(kind, v1alpha1.ReasonNamespaceTerminating, namespaceTerminating)
	case v.plan.start > 0:
		return v.learnerStarting()
	case attempt.CompletionTime != nil && v.suspended():
		return status.False(kind, v1alpha1.ReasonSuspended, "The run is suspended.")
	case v.plan.held:
		return not(kind, jobSuspended)
	case attempt.CompletionTime != nil && attempt.Reason == string(problem.CreateRefused):
		return v.learnerRefused()
	case attempt.CompletionTime != nil:
		return betweenAttempts(v, kind, v1alpha1.ReasonStarting, endOf(*attempt))
	}
	return v.learnerAnswering()
}

// learnerAnswering returns PodsReady of a run whose newest attempt is in progress.
func (v view) learnerAnswering() status.Condition {
	const kind = v1alpha1.ConditionPodsReady
	pod := v.seen.Learners[status.NewestAttempt(v.run)].Pod
	_, running := learnerRunning(pod)
	switch {
	case !running:
		return v.learnerWaits(pod)
	case v.reply() != nil:
		return status.True(kind, v1alpha1.ReasonRunning, "The learner answers.")
	case v.awaitsReply() && v.unreachableBefore():
		return v.asBefore(kind)
	case v.awaitsReply() && v.answeredBefore():
		return status.True(kind, v1alpha1.ReasonRunning, "The learner answers.")
	case v.awaitsReply():
		return status.False(kind, v1alpha1.ReasonStarting, "The learner runs and has not answered yet.")
	default:
		return status.Show(kind, metav1.ConditionUnknown, v.silence())
	}
}

// learnerWaits returns PodsReady of a run whose learner does not run yet.
func (v view) learnerWaits(pod *corev1.Pod) status.Condition {
	const kind = v1alpha1.ConditionPodsReady
	switch found := v.learnerObstacle(); {
	case found.Code != "":
		return not(kind, found)
	case pod == nil:
		return status.False(kind, v1alpha1.ReasonStarting, "The pod has not been made yet.")
	default:
		return status.False(kind, v1alpha1.ReasonStarting, "The pod is starting.")
	}
}

func rolloutsCondition(v view) status.Condition {
	const kind = v1alpha1.ConditionPodsReady
	wanted := v.seen.Queue.Workers(v.run)
	obstacle, refused := v.workersRefused()
	switch {
	case !v.hasWorkers():
		return status.True(kind, v1alpha1.ReasonRunning, "The learner answers. The run samples nothing and has no workers.")
	case v.seen.Rollout == nil && !refused:
		return status.False(kind, v1alpha1.ReasonNotStarted, "The workers have not been made yet.")
	case v.seen.Rollout == nil:
		return obstacle
	case v.seen.Rollout.DeletionTimestamp != nil && !refused:
		return status.False(kind, v1alpha1.ReasonStarting, "The workers are being replaced.")
	case wanted == 0:
		return not(kind, problem.Problem{Code: problem.ScaledToZero})
	case desired.SuspendedByOther(v.seen.Rollout):
		return not(kind, workersSuspended)
	case v.seen.WorkersReady() < wanted && refused:
		return obstacle
	case v.seen.WorkersReady() < wanted:
		return not(kind, problem.Problem{Code: problem.WorkersMissing})
	case v.seen.ProgramsObstacle.Code != "":
		return not(kind, v.seen.ProgramsObstacle)
	default:
		return status.True(kind, v1alpha1.ReasonRunning, "The learner answers, and all workers are ready.")
	}
}

func progressingCondition(v view) status.Condition { return v.withCrash(progressCondition(v)) }

func progressCondition(v view) status.Condition {
	const kind = v1alpha1.ConditionProgressing
	switch attempt, awaiting := v.attempt(), v.awaiting(); {
	case v.finished():
		return status.False(kind, v1alpha1.ReasonFinished, "The run is over."+v.continuationOfRetry())
	case v.plan.terminating:
		return status.False(kind, v1alpha1.ReasonNamespaceTerminating, namespaceTerminating)
	case v.suspended():
		return v.as(kind, v1alpha1.ConditionSuspended, metav1.ConditionFalse)
	case v.plan.blocked != nil:
		return not(kind, *v.plan.blocked)
	case v.queued():
		return v.queueCondition(kind)
	case v.plan.backingOff && endpointProblem(v) != nil:
		return *endpointProblem(v)
	case awaiting != nil && awaiting.Reason == string(problem.CreateRefused):
		return v.learnerRefused().As(kind, metav1.ConditionFalse)
	case v.plan.backingOff:
		return betweenAttempts(v, kind, v1alpha1.ReasonBackingOff,
			"The next attempt waits. "+endOf(*attempt)+" "+v.continuation())
	case v.stands(kind):
		return v.asBefore(kind)
	case learnerCondition(v).Status != metav1.ConditionTrue:
		return progressWithoutLearner(v)
	case v.reply() == nil:
		return status.False(kind, v1alpha1.ReasonWaitingForLearner, "The learner has not answered yet.")
	default:
		return progressOfLearner(v, *v.reply())
	}
}

// progressOfLearner returns Progressing by the newest reply of a running learner.
func progressOfLearner(v view, reply contract.HeartbeatReply) status.Condition {
	const kind = v1alpha1.ConditionProgressing
	if found, any := reply.Problem(); any {
		return reportedProblem(v, found)
	}
	if former := endpointProblem(v); former != nil {
		return *former // since nothing shows yet that it was repaired
	}
	if v.hasWorkers() && reply.Progress.WorkersSeen == 0 && v.seen.WorkersReady() == 0 &&
		reply.Progress.Phase != contract.PhaseOpening {
		if c, refused := v.workersRefused(); refused {
			return c.As(kind, metav1.ConditionFalse)
		}
		return not(kind, v.workersAwaited())
	}
	return status.True(kind, v1alpha1.ReasonProgressing, "The run makes progress. "+v.continuation())
}

// reportedProblem returns Progressing of a run whose learner reports a problem.
func reportedProblem(v view, found problem.Problem) status.Condition {
	const kind = v1alpha1.ConditionProgressing
	found = endpoint.Trimmed(v.atTinkerEndpoint(v.atEndpoint(status.NewestAttempt(v.run), found)))
	switch row := problem.Lookup(found.Code); {
	case !problem.IsKnown(found.Code):
		return status.Show(kind, metav1.ConditionUnknown, found)
	case row.Continues:
		return status.Show(kind, metav1.ConditionTrue, found)
	}
	return not(kind, found)
}

// progressWithoutLearner names the problem that a person has to repair before the learner runs.
func progressWithoutLearner(v view) status.Condition {
	const kind = v1alpha1.ConditionProgressing
	switch c := learnerCondition(v); {
	case c.Reason == v1alpha1.ReasonUnreachable:
		return c.As(kind, metav1.ConditionUnknown)
	case c.Code == problem.CreateRefused, v.learnerObstacle().NeedsAction() && c.Code == v.learnerObstacle().Code:
		return c.As(kind, metav1.ConditionFalse)
	case endpointProblem(v) != nil:
		return *endpointProblem(v) // The next learner finds out whether it was repaired.
	default:
		return status.False(kind, v1alpha1.ReasonWaitingForLearner, c.Message)
	}
}

func stalledCondition(v view) status.Condition {
	const kind = v1alpha1.ConditionStalled
	switch {
	case v.is(v1alpha1.ConditionFailed):
		return v.as(kind, v1alpha1.ConditionFailed, metav1.ConditionTrue)
	case v.is(v1alpha1.ConditionComplete), v.plan.terminating:
		return status.False(kind, v1alpha1.ReasonAsExpected, "No intervention is required.")
	case v.isBlocked():
		return status.Show(kind, metav1.ConditionTrue, *v.plan.blocked)
	case v.queued():
		return v.queueStall()
	case v.isStalled():
		return v.stall(kind)
	case v.awaitsNode():
		return v.as(kind, v1alpha1.ConditionSuspended, metav1.ConditionTrue)
	case v.stands(kind):
		return v.asBefore(kind)
	case learnerNeedsAction(v):
		return learnerCondition(v).As(kind, metav1.ConditionTrue)
	case awaitsRepair(v), v.awaitsAnswer(), v.awaitsWorkers():
		return v.as(kind, v1alpha1.ConditionProgressing, metav1.ConditionTrue)
	case v.neverStarts() != (problem.Problem{}):
		return status.Show(kind, metav1.ConditionTrue, v.neverStarts())
	case v.reply() != nil && v.reply().Progress.Diverged:
		return status.Show(kind, metav1.ConditionTrue, problem.Problem{Code: problem.MetricNotFinite})
	default:
		return status.False(kind, v1alpha1.ReasonAsExpected, "No intervention is required.")
	}
}

// isBlocked reports whether the next attempt cannot start until a person acts.
func (v view) isBlocked() bool {
	by := v.plan.blocked
	return by != nil && by.NeedsAction() && (!by.Row().Grace || v.lasts(v1alpha1.ConditionAccepted))
}

// awaitsRepair reports whether an answering learner has waited for a repair for longer than such problems take to pass
// by themselves.
func awaitsRepair(v view) bool {
	reply := v.reply()
	if reply == nil {
		return false
	}
	lasting := reply.AwaitsRepair() || v.workersAwaitRepair()
	return lasting && v.lasts(v1alpha1.ConditionProgressing)
}

// keyRefused returns the problem of a refused key, and names the Secret that has the key. A run at a TinkerEndpoint has
// a token instead, which is valid while the endpoint allows the run.
func keyRefused(run *v1alpha1.TrainingRun) problem.Problem {
	if named := run.Spec.Tinker.EndpointRef; named != nil {
		return problem.Problem{Code: problem.TokenRefused, Evidence: fmt.Sprintf("The run names %q.", named.Name)}
	}
	key := ptr.Deref(run.Spec.Tinker.APIKeySecretKeyRef, ref.SecretKey{})
	return problem.Problem{Code: problem.KeyRefused, Field: fmt.Sprintf("key %q of Secret %q", key.Key, key.Name)}
}

// readyCondition is true while the run is as the spec asks: it makes progress, is complete, or is suspended.
func readyCondition(v view) status.Condition {
	const kind = v1alpha1.ConditionReady
	switch {
	case v.is(v1alpha1.ConditionComplete):
		return v.as(kind, v1alpha1.ConditionComplete, metav1.ConditionTrue)
	case v.is(v1alpha1.ConditionStalled):
		return v.as(kind, v1alpha1.ConditionStalled, metav1.ConditionFalse)
	case v.is(v1alpha1.ConditionSuspended):
		return v.as(kind, v1alpha1.ConditionSuspended, metav1.ConditionTrue)
	case v.is(v1alpha1.ConditionProgressing):
		return v.as(kind, v1alpha1.ConditionProgressing, metav1.ConditionTrue)
	default:
		return v.as(kind, v1alpha1.ConditionProgressing, metav1.ConditionFalse)
	}
}
