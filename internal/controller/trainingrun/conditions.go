// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// firstReplyLimit is how long a learner that runs may take to answer for the first time.
const firstReplyLimit = 30 * time.Second

// view is what conditions are computed from.
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
		status.Set(&next.Conditions, v.run.Generation, v.now, c(v))
	}
	setRecording(next, v)
	next.Conditions = slices.DeleteFunc(next.Conditions, func(c metav1.Condition) bool {
		return !slices.Contains(conditionTypes, c.Type) // An earlier build had it.
	})
	next.State = stateOf(v)
}

// conditionTypes are the conditions of a run.
var conditionTypes = []string{
	v1alpha1.ConditionAccepted, v1alpha1.ConditionPodsReady, v1alpha1.ConditionProgressing,
	v1alpha1.ConditionRecording, v1alpha1.ConditionReady, v1alpha1.ConditionStalled, v1alpha1.ConditionSuspended,
	v1alpha1.ConditionComplete, v1alpha1.ConditionFailed,
}

// is says whether a condition that is set already holds.
func (v view) is(kind string) bool { return status.IsTrue(v.next.Conditions, kind) }

// as gives a condition that is set already under another type, with its reason and message.
func (v view) as(kind, from string, make func(kind, reason, message string) status.Condition) status.Condition {
	c := meta.FindStatusCondition(v.next.Conditions, from)
	return make(kind, c.Reason, c.Message)
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
	return finalCondition(v, v1alpha1.ConditionComplete, "The run has not completed.")
}

func failedCondition(v view) status.Condition {
	return finalCondition(v, v1alpha1.ConditionFailed, notFailed)
}

const notFailed = "The run has not failed."

// finalCondition stays True, except that of a failed run that is tried again.
func finalCondition(v view, kind, otherwise string) status.Condition {
	if f := v.plan.final; f != nil && f.Condition == kind {
		return status.True(kind, f.Reason, f.Message)
	}
	if v.is(kind) {
		return v.as(kind, kind, status.True)
	}
	return status.False(kind, v1alpha1.ReasonNotFinished, otherwise)
}

func suspendedCondition(v view) status.Condition {
	const kind = v1alpha1.ConditionSuspended
	switch attempt := v.attempt(); {
	case v.finished():
		return status.False(kind, v1alpha1.ReasonFinished, "The run is over.")
	case !v.suspended() && v.queued() && attempt != nil && attempt.CompletionTime == nil:
		return status.Unknown(kind, v1alpha1.ReasonDraining, "The learner is asked to stop at a saved state.")
	case !v.suspended():
		return status.False(kind, v1alpha1.ReasonNotSuspended, "The spec does not ask to suspend.")
	case attempt != nil && attempt.CompletionTime == nil:
		return status.Unknown(kind, v1alpha1.ReasonDraining, "The learner is asked to stop at a saved state.")
	case v.seen.Rollout != nil || v.seen.Learners[status.NewestAttempt(v.run)].Job != nil:
		return status.Unknown(kind, v1alpha1.ReasonDraining, "The pods are being deleted."+v.lingering())
	case !*v.run.Spec.Suspend:
		return status.True(kind, v1alpha1.ReasonBudgetReached, desired.BudgetReached(v.run, *v.next, v.now)+
			". Raise the limit, and the run continues from its newest checkpoint.")
	case v.run.Spec.Mode == v1alpha1.ModeEvaluate:
		return status.True(kind, v1alpha1.ReasonSuspended,
			"The run is suspended until suspend is false; then it evaluates again.")
	default:
		return status.True(kind, v1alpha1.ReasonSuspended,
			"The run is suspended at its newest checkpoint until suspend is false.")
	}
}

// podsCondition has what keeps the learner from answering, and then what keeps workers from being ready.
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
	case v.queued() && (attempt == nil || attempt.CompletionTime != nil):
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
		return status.False(kind, v1alpha1.ReasonJobSuspended, jobSuspended)
	case attempt.CompletionTime != nil && attempt.Reason == v1alpha1.ReasonCreateRefused:
		return v.learnerRefused()
	case attempt.CompletionTime != nil:
		return betweenAttempts(v, kind, v1alpha1.ReasonRestarting, endOf(*attempt))
	}
	return v.learnerAnswering()
}

// learnerAnswering is the condition of a learner whose attempt lasts.
func (v view) learnerAnswering() status.Condition {
	const kind = v1alpha1.ConditionPodsReady
	pod := v.seen.Learners[status.NewestAttempt(v.run)].Pod
	_, running := learnerRunning(pod)
	switch {
	case !running:
		o := v.learnerObstacle()
		return status.False(kind, o.Reason, o.Message)
	case v.reply() != nil:
		return status.True(kind, v1alpha1.ReasonRunning, "The learner answers.")
	case v.awaitsReply() && v.unreachableBefore():
		return v.asBefore(kind)
	case v.awaitsReply() && v.answeredBefore():
		return status.True(kind, v1alpha1.ReasonRunning, "The learner answers.")
	case v.awaitsReply():
		return status.False(kind, v1alpha1.ReasonStarting, "The learner runs and has not answered yet.")
	default:
		return status.Unknown(kind, v1alpha1.ReasonUnreachable, v.silence())
	}
}

func rolloutsCondition(v view) status.Condition {
	const kind = v1alpha1.ConditionPodsReady
	wanted := v.seen.Queue.Workers(v.run)
	obstacle, refused := v.workersRefused()
	switch {
	case v.seen.Rollout == nil && !refused:
		return status.False(kind, v1alpha1.ReasonNotStarted, "The workers have not been made yet.")
	case v.seen.Rollout == nil:
		return obstacle
	case v.seen.Rollout.DeletionTimestamp != nil && !refused:
		return status.False(kind, v1alpha1.ReasonWorkersReplaced, "The workers are being replaced.")
	case wanted == 0:
		return status.False(kind, v1alpha1.ReasonScaledToZero,
			"The spec asks for no workers: raise rollouts.workers to continue.")
	case desired.SuspendedByOther(v.seen.Rollout):
		return status.False(kind, v1alpha1.ReasonJobSuspended,
			"Another controller, such as a queue, has suspended the workers' Job: they start once that controller resumes it.")
	case v.seen.WorkersReady() < wanted && refused:
		return obstacle
	case v.seen.WorkersReady() < wanted:
		return status.False(kind, v1alpha1.ReasonWorkersMissing,
			"Not all workers are ready: see the pods of status.workerSelector.")
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
		return v.as(kind, v1alpha1.ConditionSuspended, status.False)
	case v.plan.blocked != nil:
		return status.False(kind, v.plan.blocked.Reason, v.plan.blocked.Message)
	case v.queued():
		return v.queueCondition(kind)
	case v.plan.backingOff && endpointProblem(v) != nil:
		return *endpointProblem(v)
	case awaiting != nil && awaiting.Reason == v1alpha1.ReasonCreateRefused:
		c := v.learnerRefused()
		return status.False(kind, c.Reason, c.Message)
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

// progressOfLearner is the progress that a learner which runs reports.
func progressOfLearner(v view, reply contract.HeartbeatReply) status.Condition {
	const kind = v1alpha1.ConditionProgressing
	if found, any := reply.Problem(); any {
		return reportedProblem(v, found)
	}
	if former := endpointProblem(v); former != nil {
		return *former // since nothing shows yet that it was repaired
	}
	if reply.Progress.WorkersSeen == 0 && v.seen.WorkersReady() == 0 && reply.Progress.Phase != contract.PhaseOpening {
		if c, refused := v.workersRefused(); refused {
			return status.False(kind, c.Reason, c.Message)
		}
		return status.False(kind, v1alpha1.ReasonWaitingForWorkers, v.workersAwaited())
	}
	return status.True(kind, phaseReason(reply.Progress.Phase), "The run makes progress. "+v.continuation())
}

// reportedProblem is the progress of a run whose learner reports a problem.
func reportedProblem(v view, found problem.Problem) status.Condition {
	const kind = v1alpha1.ConditionProgressing
	row := problem.Lookup(found.Code)
	message := endpoint.Message(found)
	if found.Code == problem.EndpointNotTinker {
		message = endpoint.Repair(v.run.Spec.Tinker, observe.SettingsFixed(v.run), found.Evidence)
	}
	switch {
	case !problem.IsKnown(found.Code):
		return status.Unknown(kind, row.Reason, message)
	case row.Continues:
		return status.True(kind, row.Reason, message)
	}
	return status.False(kind, row.Reason, message)
}

// progressWithoutLearner names what a person has to repair before the learner runs.
func progressWithoutLearner(v view) status.Condition {
	const kind = v1alpha1.ConditionProgressing
	switch c := learnerCondition(v); {
	case c.Reason == v1alpha1.ReasonUnreachable:
		return status.Unknown(kind, c.Reason, c.Message)
	case c.Reason == v1alpha1.ReasonCreateRefused, v.learnerObstacle().NeedsAction &&
		c.Reason == v.learnerObstacle().Reason:
		return status.False(kind, c.Reason, c.Message)
	case endpointProblem(v) != nil:
		return *endpointProblem(v) // which the next learner finds out about
	default:
		return status.False(kind, v1alpha1.ReasonWaitingForLearner, c.Message)
	}
}

func phaseReason(phase contract.Phase) string {
	switch phase {
	case contract.PhaseOpening:
		return v1alpha1.ReasonOpening
	case contract.PhaseEvaluating:
		return v1alpha1.ReasonEvaluating
	default:
		return v1alpha1.ReasonTraining
	}
}

func stalledCondition(v view) status.Condition {
	const kind = v1alpha1.ConditionStalled
	switch {
	case v.is(v1alpha1.ConditionFailed):
		return v.as(kind, v1alpha1.ConditionFailed, status.True)
	case v.is(v1alpha1.ConditionComplete), v.plan.terminating:
		return status.False(kind, v1alpha1.ReasonNotStalled, "No intervention is required.")
	case v.plan.blocked != nil && v.plan.blocked.NeedsAction &&
		(!v.plan.blocked.Grace || v.lasts(v.plan.blocked.Condition)):
		return status.True(kind, v.plan.blocked.Reason, v.plan.blocked.Message)
	case v.queued():
		return status.False(kind, v1alpha1.ReasonNotStalled, "No intervention is required.")
	case v.isStalled():
		return v.stall(kind)
	case v.awaitsNode():
		return v.as(kind, v1alpha1.ConditionSuspended, status.True)
	case v.stands(kind):
		return v.asBefore(kind)
	case learnerNeedsAction(v):
		c := learnerCondition(v)
		return status.True(kind, c.Reason, c.Message)
	case awaitsRepair(v), v.awaitsAnswer(), v.awaitsWorkers():
		return v.as(kind, v1alpha1.ConditionProgressing, status.True)
	case v.neverStarts() != "":
		return status.True(kind, v1alpha1.ReasonWaitingForLearner, v.neverStarts())
	case v.reply() != nil && v.reply().Progress.Diverged:
		return status.True(kind, v1alpha1.ReasonDiverged,
			"A metric was NaN or infinite: continuing the run is pointless; start another from a checkpoint, with a lower "+
				"learning rate.")
	default:
		return status.False(kind, v1alpha1.ReasonNotStalled, "No intervention is required.")
	}
}

// awaitsRepair says that a learner which answers has waited for something that a person has to repair for longer than
// such things take to pass by themselves.
func awaitsRepair(v view) bool {
	reply := v.reply()
	if reply == nil {
		return false
	}
	lasting := reply.AwaitsRepair() || v.workersAwaitRepair()
	return lasting && v.lasts(v1alpha1.ConditionProgressing)
}

// keyRefused says how a refused key is repaired.
func keyRefused(run *v1alpha1.TrainingRun) string {
	ref := run.Spec.Tinker.APIKeySecretKeyRef
	return fmt.Sprintf("The endpoint refuses the API key: put a valid one into key %q of Secret %q, or correct "+
		"tinker.apiKeySecretKeyRef; "+
		"the run then continues by itself.", ref.Key, ref.Name)
}

// readyCondition holds while the run does what the spec asks: it makes progress, is complete, or is suspended.
func readyCondition(v view) status.Condition {
	const kind = v1alpha1.ConditionReady
	switch {
	case v.is(v1alpha1.ConditionComplete):
		return v.as(kind, v1alpha1.ConditionComplete, status.True)
	case v.is(v1alpha1.ConditionStalled):
		return v.as(kind, v1alpha1.ConditionStalled, status.False)
	case v.is(v1alpha1.ConditionSuspended):
		return v.as(kind, v1alpha1.ConditionSuspended, status.True)
	case v.is(v1alpha1.ConditionProgressing):
		return v.as(kind, v1alpha1.ConditionProgressing, status.True)
	default:
		return v.as(kind, v1alpha1.ConditionProgressing, status.False)
	}
}
