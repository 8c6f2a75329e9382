// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/controller/poller"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

var trainingReply = contract.HeartbeatReply{Attempt: 1, Progress: contract.Progress{Phase: contract.PhaseTraining,
	Step: 5, Steps: 60, Lineage: "a", WorkersSeen: 2}}

// runningFor is a learner that has run for a while.
func runningFor(d time.Duration) observe.Learner {
	return observe.Learner{Job: newJob("one"), Pod: newPod(
		func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State.Running.StartedAt = *ago(d) })}
}

// conditionOf returns the status and reason of a condition.
func conditionOf(s v1alpha1.TrainingRunStatus, kind string) string {
	c := meta.FindStatusCondition(s.Conditions, kind)
	return string(c.Status) + " " + c.Reason
}

func TestStatusStaysAfterManagerRestart(t *testing.T) {
	for name, reply := range map[string]contract.HeartbeatReply{
		"training": trainingReply,
		"payment required": {Attempt: 1, Problems: []problem.Problem{{Code: "PaymentRequired"}},
			Progress: trainingReply.Progress},
		"an environment is unavailable": {Attempt: 1, Progress: trainingReply.Progress,
			Unavailable: []contract.UnavailableEnvironment{{Name: "env", Problem: "no route to host", Skipped: true}}},
		"diverged": {Attempt: 1, Progress: contract.Progress{Phase: contract.PhaseTraining, Step: 5, Lineage: "a",
			Diverged: true, WorkersSeen: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			run := newRun(attempts(inProgress(1)))
			seen := observing(1, runningFor(time.Hour), replying(reply))
			before := computeStatus(run, seen, makePlan(run, seen, now), now)
			run.Status = before
			for what, known := range map[string]poller.Result{
				"not asked yet":        {},
				"asked just now":       {Since: now.Add(-time.Second)},
				"one heartbeat failed": {Since: now.Add(-5 * time.Second), Err: errors.New("i/o timeout")},
			} {
				seen.Heartbeat = known
				p := makePlan(run, seen, now)
				after := computeStatus(run, seen, p, now)
				if diff := cmp.Diff(before, after, cmpopts.IgnoreFields(v1alpha1.TrainingRunStatus{},
					"EffectiveTrainingRatio")); diff != "" {
					t.Errorf("%s: the first reconcile of a new manager changes the status (-before +after):\n%s", what, diff)
				}
				if p.requeue > poller.FreshFor+time.Second {
					t.Errorf("%s: the run is reconciled again after %v, want at most %v", what, p.requeue, poller.FreshFor+time.Second)
				}
			}
			silent(&seen)
			after := computeStatus(run, seen, makePlan(run, seen, now), now)
			if got := conditionOf(after, v1alpha1.ConditionPodsReady); got != "Unknown Unreachable" {
				t.Errorf("a learner that did not reply for an hour: PodsReady=%s", got)
			}
			if after.State != before.State {
				t.Errorf("state of a silent learner = %s, want %s", after.State, before.State)
			}
		})
	}
}

func TestManagerRestartDoesNotEndADrain(t *testing.T) {
	for name, tc := range map[string]struct {
		draining time.Duration
		known    poller.Result
		deleted  bool
	}{
		"not asked yet": {2 * time.Minute, poller.Result{}, false},
		"no reply for a moment": {2 * time.Minute, poller.Result{Since: now.Add(-20 * time.Second),
			Err: errors.New("timeout")}, false},
		"no reply for long": {2 * time.Minute, poller.Result{Since: now.Add(-31 * time.Second),
			Err: errors.New("timeout")}, true},
		"the manager was away for too long": {time.Hour, poller.Result{Since: now.Add(-2 * time.Second)}, false},
		"the limit is over": {11 * time.Minute, poller.Result{Since: now.Add(-time.Minute), At: now,
			Reply: &contract.HeartbeatReply{RunUID: "0123456789", Attempt: 1}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			run := newRun(attempts(inProgress(1)), suspend, conditionIs(v1alpha1.ConditionSuspended, "Unknown", tc.draining))
			p := makePlan(run, observing(1, runningFor(time.Hour), func(o *observe.State) { o.Heartbeat = tc.known }), now)
			if got := len(p.deletes) > 0; got != tc.deleted {
				t.Errorf("deletes = %v, want deleted = %v", outcomeOf(p).Deletes, tc.deleted)
			}
			if !tc.deleted && p.requeue > drainUnreachable {
				t.Errorf("requeue = %v, want at most %v", p.requeue, drainUnreachable)
			}
		})
	}
}

// TestSilentLearnerIsReportedInTime checks that the run is reconciled again when the last reply is no longer valid:
// the poller reports the first failed heartbeat at once, and no later ones.
func TestSilentLearnerIsReportedInTime(t *testing.T) {
	run := newRun(attempts(inProgress(1)))
	seen := observing(1, runningFor(time.Hour), replying(trainingReply))
	seen.Heartbeat.Err = errors.New("i/o timeout")
	p := makePlan(run, seen, now)
	if want := poller.FreshFor; p.requeue > want {
		t.Fatalf("requeue = %v after a failed heartbeat, want at most %v", p.requeue, want)
	}
	run.Status = computeStatus(run, seen, p, now)
	later := now.Add(p.requeue)
	after := computeStatus(run, seen, makePlan(run, seen, later), later)
	if got := conditionOf(after, v1alpha1.ConditionReady); got != "False Unreachable" {
		t.Errorf("Ready = %s at the next reconcile, want False Unreachable", got)
	}
}

func TestNewLearnerThatNeverAnswers(t *testing.T) {
	run := newRun(attempts(inProgress(1)))
	at := func(running time.Duration) (string, time.Duration) {
		seen := observing(1, runningFor(running), func(o *observe.State) {
			o.Heartbeat = poller.Result{Since: now.Add(-running), Err: errors.New("connection refused")}
		})
		p := makePlan(run, seen, now)
		return conditionOf(computeStatus(run, seen, p, now), v1alpha1.ConditionPodsReady), p.requeue
	}
	if got, wait := at(20 * time.Second); got != "False Starting" || wait > 11*time.Second {
		t.Errorf("after 20 s: PodsReady=%s, requeue in %v; want False Starting, within 11 s", got, wait)
	}
	if got, _ := at(31 * time.Second); got != "Unknown Unreachable" {
		t.Errorf("after 31 s: PodsReady=%s, want Unknown Unreachable", got)
	}
}
