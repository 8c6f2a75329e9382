// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"cmp"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/attempt"
	"github.com/tinker-operator/tinker-operator/internal/controller/kueue"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/controller/podstate"
	"github.com/tinker-operator/tinker-operator/internal/controller/workers"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// plan has the actions on a run and their reasons. Making a plan has no effect.
type plan struct {
	// ending is the end of the newest attempt; nil unless it has just ended.
	ending *attempt.Ending
	// next is the status with that ending, or the status of a finished run that continues; nil if there is neither.
	next *v1alpha1.TrainingRunStatus
	// final ends the run.
	final *attempt.Final
	// start is the number of the attempt to record and start; 0 if there is none.
	start int32
	// file and pins are the inputs of that attempt; prepare fills them in.
	file *contract.RunFile
	pins desired.Pins
	// blocked is the problem that keeps a due attempt from starting.
	blocked *problem.Problem
	// unusable is the problem that would keep the next attempt from starting. It is set while the newest attempt is in
	// progress or the run is suspended.
	unusable *problem.Problem
	// backingOff says that the next attempt waits.
	backingOff bool
	// queued says that an attempt is due and waits until Kueue admits the run.
	queued bool
	// queue is the action on the run's Workload, and priority the priority of a new Workload.
	queue    kueue.Action
	priority *kueue.Priority
	// held says that the next attempt waits until another controller resumes the newest attempt's Job.
	held bool
	// desired is the order to learners in heartbeats.
	desired contract.Desired
	// deletes are the Jobs and the Service to delete.
	deletes []client.Object
	// foreground keeps deleted Jobs until their pods no longer exist.
	foreground bool
	// workers says that the workers' Job and Service are brought in line with the spec.
	workers bool
	// servers is the action on shared environment servers if the workers are not reconciled; otherwise the servers run.
	servers workers.ServersAction
	// credentialsChanged says that the learner is restarted because it has credentials of another manager key.
	credentialsChanged bool
	// keyChanged is the field of a key or token whose change restarts the learner; "" if there is none.
	keyChanged string
	// settingsChanged says that the learner is restarted because the settings that decide the weights changed before a
	// first step.
	settingsChanged bool
	// terminating says that the run's namespace is being deleted.
	terminating bool
	// expire deletes the run itself.
	expire bool
	// requeue is the time until the next reconcile without an event; 0 means none.
	requeue time.Duration
}

// maxRequeue is the maximum time between two reconciles of a run that waits.
const maxRequeue = 5 * time.Minute

// makePlan decides, in this order: a run that is over is cleaned up, unless it is to continue; the newest attempt
// continues, or has ended; its ending ends the run; a suspended run gets no attempt, nor does a run whose Job another
// controller has suspended; otherwise the next attempt starts, after its back-off.
func makePlan(run *v1alpha1.TrainingRun, seen observe.State, now time.Time) plan {
	p := plan{desired: contract.DesiredRun, deletes: earlierJobs(run, seen, now)}
	retrying := goesOn(run)
	switch {
	case retrying:
		run = run.DeepCopy()
		run.Status = withRetry(run.Status, now)
		p.next = &run.Status
	case status.RunFinished(run):
		return p.withCleanup(run, seen, now)
	}
	if stops(run, seen, now) {
		p.desired = contract.DesiredDrain
	}
	if !status.AttemptEnded(run) {
		p.ending = endingOf(run, seen, now)
		if p.ending == nil {
			return p.withRunning(run, seen, now)
		}
		next := withEnding(run, seen, *p.ending, now)
		p.next = &next
		if p.final = finalOfEnding(run, next, *p.ending); p.final != nil {
			explainFinal(run, seen, p.final)
			p.deletes = append(p.deletes, lingering(seen, status.NewestAttempt(run))...)
			return p
		}
		run = run.DeepCopy()
		run.Status = next
	}
	if suspended(run, seen, now) || seen.Queue.Stops() && !idle(seen) {
		return p.withSuspension(run, seen)
	}
	return p.withNext(run, seen, retrying, now)
}

// withNext is the plan of a run whose next attempt is due: it waits for another controller, for a repair or for its
// back-off, or starts.
func (p plan) withNext(run *v1alpha1.TrainingRun, seen observe.State, retrying bool, now time.Time) plan {
	p.workers = knowsWorkers(run, seen)
	if p.held = held(run, seen); p.held {
		p.requeue = maxRequeue
		return p
	}
	if p.blocked = cmp.Or(restored(run), refusedSpec(run, seen, p.ending != nil)); p.blocked != nil {
		p.requeue = maxRequeue
		return p
	}
	if left := backoffLeft(run, seen, now); left > 0 && !retrying && !settingsChanged(run, seen) {
		p.deletes = append(p.deletes, lingering(seen, status.NewestAttempt(run))...)
		p.backingOff, p.requeue = true, left
		return p
	}
	if newest := status.NewestAttempt(run); newest > 0 && !keepsLog(run.Status.Attempts[0], seen) {
		p.deletes = append(p.deletes, learnerJob(seen, newest)...)
	}
	p.start = status.NewestAttempt(run) + 1
	return p
}

// knowsWorkers reports whether a run has started, and a Job shows which data and servers its workers need while no
// attempt begins.
func knowsWorkers(run *v1alpha1.TrainingRun, seen observe.State) bool {
	if run.Status.StartTime == nil {
		return false
	}
	return seen.Rollout != nil || seen.Learners[status.NewestAttempt(run)].Job != nil
}

// goesOn reports whether a finished run is to continue: it failed and is to be tried again, or it is complete and was
// given more steps.
func goesOn(run *v1alpha1.TrainingRun) bool {
	return retried(run) || status.IsTrue(run.Status.Conditions, v1alpha1.ConditionComplete) && desired.Raised(run)
}

// finalOfEnding decides whether the end of the newest attempt ends the run: an attempt that has made all of its steps
// does not, if the spec has more steps by now.
func finalOfEnding(run *v1alpha1.TrainingRun, next v1alpha1.TrainingRunStatus, end attempt.Ending) *attempt.Final {
	final := attempt.Finish(run.Spec.FailurePolicy, next.Attempts, ptr.Deref(next.FailuresSinceCheckpoint, 0), end)
	if final == nil || final.Condition != v1alpha1.ConditionComplete {
		return final
	}
	ended := *run
	ended.Status = next
	if desired.Raised(&ended) {
		return nil
	}
	return final
}

// retried reports whether a failed run is to be tried again.
func retried(run *v1alpha1.TrainingRun) bool {
	return status.IsTrue(run.Status.Conditions, v1alpha1.ConditionFailed) &&
		*run.Spec.RetryGeneration > ptr.Deref(run.Status.ObservedRetryGeneration, 0)
}

// withRetry returns the status of a run that was over and continues: its fixed settings and its attempts stay.
func withRetry(before v1alpha1.TrainingRunStatus, now time.Time) v1alpha1.TrainingRunStatus {
	next := *before.DeepCopy()
	next.CompletionTime, next.FailuresSinceCheckpoint = nil, ptr.To[int32](0)
	generation := ptr.Deref(next.ObservedGeneration, 0)
	status.Set(&next.Conditions, &next.Codes, generation, now,
		status.False(v1alpha1.ConditionFailed, v1alpha1.ReasonAsExpected, notFailed))
	status.Set(&next.Conditions, &next.Codes, generation, now,
		status.False(v1alpha1.ConditionComplete, v1alpha1.ReasonAsExpected, notComplete))
	return next
}

// endingOf returns the end of the newest attempt, by its pod, its Job or a deadline.
func endingOf(run *v1alpha1.TrainingRun, seen observe.State, now time.Time) *attempt.Ending {
	newest := run.Status.Attempts[0]
	l := seen.Learners[newest.Number]
	if creating(newest, l, seen, now) > 0 && !stops(run, seen, now) {
		return nil
	}
	end := suspendedByOther(newest, l, attempt.EndingOfLearner(newest.Number, l.Job, l.Pod, now))
	if end != nil {
		if l.Job == nil && l.Pod == nil && seen.Refused.Code != "" {
			return &attempt.Ending{Cause: contract.CauseRefused, Reason: seen.Refused.Code,
				Message: seen.Refused.Evidence}
		}
		return explainDrain(run, seen, end, now)
	}
	if stops(run, seen, now) {
		return neverStarted(l)
	}
	if changed(run, l) {
		return &attempt.Ending{Cause: contract.CauseDrained,
			Message: "The learner had not started, and the spec of it has changed."}
	}
	return overdue(run, newest, l, seen, now)
}

// explainDrain adds the reason to the ending of a learner that has drained, or was deleted, although its run was not to
// stop.
func explainDrain(run *v1alpha1.TrainingRun, seen observe.State, end *attempt.Ending, now time.Time) *attempt.Ending {
	if (end.Cause == contract.CauseDrained || end.Cause == contract.CauseDisrupted) && settingsChanged(run, seen) {
		end.Reason, end.Message = problem.SettingsChanged,
			"What decides the weights was changed before a first step was committed: the next attempt starts with it."
		return end
	}
	if end.Cause == contract.CauseDrained && end.Reason == "" && end.Progress != nil && !stops(run, seen, now) &&
		!attempt.AskedToStop(run.Status) {
		end.Message = "The learner's pod was deleted or evicted while the run was not to stop; the learner saved its " +
			"state first."
	}
	return end
}

// createGrace is the time for which the Job of a recorded attempt may be missing: another manager, which was the leader
// a moment ago, may be about to create it.
const createGrace = 10 * time.Second

// creating returns what is left of createGrace; 0 if the Job exists, or the API server refused it.
func creating(newest v1alpha1.Attempt, l observe.Learner, seen observe.State, now time.Time) time.Duration {
	if l.Job != nil || l.Pod != nil || seen.Refused.Code != "" || newest.StartTime == nil {
		return 0
	}
	return max(0, newest.StartTime.Add(createGrace).Sub(now))
}

// changed reports whether a learner that has not run differs from the spec, for example because a wrong Secret or image
// was corrected.
func changed(run *v1alpha1.TrainingRun, l observe.Learner) bool {
	if l.Job == nil || neverStarted(l) == nil {
		return false
	}
	return len(desired.PendingChanges(run, l.Job)) > 0
}

// hasRun reports whether the status shows that an attempt's learner has run. Another manager may have observed that.
func hasRun(newest v1alpha1.Attempt) bool {
	return newest.FromStep != nil || newest.AnswerTime != nil
}

// neverStarted returns the ending of an attempt that is to be suspended before its learner has run: there is nothing to
// save. It returns nil if the learner runs or may run.
func neverStarted(l observe.Learner) *attempt.Ending {
	if _, running := learnerRunning(l.Pod); running {
		return nil
	}
	if l.Pod != nil && l.Pod.Spec.NodeName != "" && l.Pod.Status.Phase == corev1.PodRunning {
		return nil
	}
	return &attempt.Ending{Cause: contract.CauseDrained, Message: "Suspended before the learner ran."}
}

// withRunning returns the plan of a run whose newest attempt continues. The plan deletes the learner's Job, which ends
// the attempt, if a change of credentials or settings needs another attempt, or if the learner drains for too long.
func (p plan) withRunning(run *v1alpha1.TrainingRun, seen observe.State, now time.Time) plan {
	p.workers = true
	p.requeue = maxRequeue
	if o := workersOf(run, seen, nil); o.CannotWork(run) {
		p.requeue = min(p.requeue, max(time.Second, o.RetryIn(now)))
	}
	l := seen.Learners[status.NewestAttempt(run)]
	if l.Pod != nil && l.Pod.DeletionTimestamp != nil {
		p.requeue = attempt.OverdueAfter
	}
	if credentialsChanged(run, seen) {
		// The learner saves its state, since its pod is given time to end.
		jobs := learnerJob(seen, status.NewestAttempt(run))
		p.credentialsChanged, p.deletes = len(jobs) > 0, append(p.deletes, jobs...)
		return p
	}
	if key, settings := desired.ChangedKey(run, l.Job), settingsChanged(run, seen); key != "" || settings {
		if jobs := learnerJob(seen, status.NewestAttempt(run)); len(jobs) > 0 {
			p.keyChanged, p.settingsChanged, p.deletes = key, settings, append(p.deletes, jobs...)
		}
	}
	if !stops(run, seen, now) {
		p.requeue = min(p.requeue, untilDeadline(run, l, seen, now), untilLimit(run, now))
		return p
	}
	since, draining := status.Since(run.Status.Conditions, v1alpha1.ConditionSuspended, metav1.ConditionUnknown)
	if draining && drainOverdue(l, seen, now.Sub(since), now) {
		p.deletes = append(p.deletes, learnerJob(seen, status.NewestAttempt(run))...)
		return p
	}
	p.requeue = drainUnreachable
	return p
}

// withSuspension deletes the Jobs of a suspended run once their attempt is over.
func (p plan) withSuspension(run *v1alpha1.TrainingRun, seen observe.State) plan {
	p.deletes = append(p.deletes, learnerJob(seen, status.NewestAttempt(run))...)
	p.deletes = append(p.deletes, unlessDeleted(seen.Rollout)...)
	p.foreground, p.servers = true, workers.StopServers
	if seen.Queue.Managed {
		p.servers = workers.DeleteServers // The next admission may place them elsewhere.
	}
	return p
}

// withCleanup keeps the last learner's Job, for its log, and deletes the rest; a run whose time to live is over is also
// deleted.
func (p plan) withCleanup(run *v1alpha1.TrainingRun, seen observe.State, now time.Time) plan {
	p.servers = workers.DeleteServers
	p.deletes = append(p.deletes, unlessDeleted(seen.Rollout)...)
	if seen.Service != nil {
		p.deletes = append(p.deletes, seen.Service)
	}
	ttl := run.Spec.TTLSecondsAfterFinished
	if ttl == nil || run.Status.CompletionTime == nil {
		return p
	}
	if left := run.Status.CompletionTime.Add(seconds(*ttl)).Sub(now); left > 0 {
		p.requeue = left
		return p
	}
	p.expire = true
	return p
}

// lingering returns the Job of an attempt that is over although its pod is not: the pod never started, stalls, or is on
// a silent node. The Job of a pod that has ended stays for its log until the next attempt.
func lingering(seen observe.State, attempt int32) []client.Object {
	l := seen.Learners[attempt]
	if l.Pod == nil || podstate.Termination(l.Pod, desired.LearnerContainer) == nil {
		return learnerJob(seen, attempt)
	}
	return nil
}

func learnerJob(seen observe.State, attempt int32) []client.Object {
	return unlessDeleted(seen.Learners[attempt].Job)
}

// unlessDeleted returns a Job that exists and is not being deleted.
func unlessDeleted(job *batchv1.Job) []client.Object {
	if job == nil || job.DeletionTimestamp != nil {
		return nil
	}
	return []client.Object{job}
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

// backoffLeft returns how long the next attempt still has to wait after the end of the newest. If that attempt awaits a
// repair, its learner has itself tried again for a while, so the time for which its pod ran counts: only the next
// learner reads the Secret again.
func backoffLeft(run *v1alpha1.TrainingRun, seen observe.State, now time.Time) time.Duration {
	if len(run.Status.Attempts) == 0 || run.Status.Attempts[0].CompletionTime == nil {
		return 0
	}
	newest, wait := run.Status.Attempts[0], attempt.Backoff(run.Status.Attempts)
	if attempt.AwaitsRepair(newest) {
		wait -= podstate.Lasted(seen.Learners[newest.Number].Pod, desired.LearnerContainer)
	}
	return newest.CompletionTime.Add(wait).Sub(now)
}
