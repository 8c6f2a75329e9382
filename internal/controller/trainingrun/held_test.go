// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

func suspendedJob() *batchv1.Job {
	job := newJob("one")
	job.Spec.Suspend = new(true)
	return job
}

// TestJobThatAnotherControllerSuspends checks the outcome of an attempt whose Job another controller suspends, and may
// resume.
func TestJobThatAnotherControllerSuspends(t *testing.T) {
	type result struct {
		Ending  contract.Cause
		Reason  string
		Held    bool
		Start   int32
		Deletes []string
	}
	ran := inProgress(1)
	ran.FromStep, ran.ToStep = new(int64(0)), new(int64(5))
	ended := endedAttempt(1, contract.CauseDrained, 0, 0, time.Second)
	ended.Reason = string(problem.JobSuspended)
	drained := newPod(exited(75, "Error", verdictText(t, contract.Verdict{Cause: contract.CauseDrained, Attempt: 1})),
		deleted(time.Second))
	failed := suspendedJob()
	failed.Status.Failed = 1
	cases := map[string]struct {
		attempt v1alpha1.Attempt
		learner observe.Learner
		want    result
	}{
		"its learner drains": {ran,
			observe.Learner{Job: suspendedJob(), Pod: newPod(deleted(time.Second))}, result{}},
		"its learner has drained": {ran, observe.Learner{Job: suspendedJob(), Pod: drained},
			result{Ending: contract.CauseDrained, Reason: v1alpha1.ReasonJobSuspended, Held: true}},
		"its pod no longer exists": {ran, observe.Learner{Job: suspendedJob()},
			result{Ending: contract.CauseDisrupted, Reason: v1alpha1.ReasonJobSuspended, Held: true}},
		"its learner has not run": {inProgress(1), observe.Learner{Job: suspendedJob()}, result{}},
		"its learner crashed while it drained": {ran,
			observe.Learner{Job: suspendedJob(), Pod: newPod(exited(1, "Error", ""))},
			result{Ending: contract.CauseCrashed, Held: true}},
		"its attempt has ended": {ended, observe.Learner{Job: suspendedJob()}, result{Held: true}},
		"it is resumed": {ended, observe.Learner{Job: newJob("one")},
			result{Start: 2, Deletes: []string{"one"}}},
		"it is resumed and has a pod": {ended, observe.Learner{Job: newJob("one"), Pod: newPod()},
			result{Start: 2, Deletes: []string{"one"}}},
		"it is resumed while the learner drains": {ran, observe.Learner{Job: newJob("one"), Pod: newPod(), Replaced: true},
			result{Ending: contract.CauseDisrupted, Reason: v1alpha1.ReasonJobSuspended, Start: 2, Deletes: []string{"one"}}},
		"it is deleted": {ended, observe.Learner{}, result{Start: 2}},
		"it has failed, so that nobody resumes it": {ended, observe.Learner{Job: failed},
			result{Start: 2, Deletes: []string{"one"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := makePlan(newRun(attempts(tc.attempt)), observing(1, tc.learner), now)
			got := result{Held: p.held, Start: p.start, Deletes: outcomeOf(p).Deletes}
			if p.ending != nil {
				got.Ending, got.Reason = p.ending.Cause, string(p.ending.Reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if p.start == 0 && !p.workers {
				t.Errorf("the workers' Job does not stay: got %+v, want workers", outcomeOf(p))
			}
		})
	}
}

// TestSuspendedJobIsReplacedForAnotherSpec checks that a Job which a queue does not admit can be corrected.
func TestSuspendedJobIsReplacedForAnotherSpec(t *testing.T) {
	ended := endedAttempt(1, contract.CauseDrained, 0, 0, time.Second)
	ended.Reason = string(problem.JobSuspended)
	run, seen := newRun(attempts(ended)), observing(1, observe.Learner{Job: templated(suspendedJob())})
	if p := makePlan(run, seen, now); !p.held || p.start != 0 {
		t.Errorf("the plan for the present spec is %+v, want one that waits", outcomeOf(p))
	}
	run.Spec.Override(v1alpha1.TargetLearner).Image = "corrected"
	if p := makePlan(run, seen, now); p.held || p.start != 2 {
		t.Errorf("the plan for another spec is %+v, want attempt 2", outcomeOf(p))
	}
}

// TestStatusWhileAnotherControllerSuspendsTheJob checks that the wait is shown, and counts neither as a stall nor as a
// restart.
func TestStatusWhileAnotherControllerSuspendsTheJob(t *testing.T) {
	ended := endedAttempt(1, contract.CauseDisrupted, 0, 0, 24*time.Hour)
	ended.Reason = string(problem.JobSuspended)
	run := newRun(attempts(ended))
	seen := observing(1, observe.Learner{Job: suspendedJob()})
	next := computeStatus(run, seen, makePlan(run, seen, now), now)
	got := map[string]string{}
	for _, c := range next.Conditions {
		got[c.Type] = string(c.Status) + " " + c.Reason
	}
	for kind, want := range map[string]string{
		v1alpha1.ConditionPodsReady:   "False JobSuspended",
		v1alpha1.ConditionProgressing: "False WaitingForLearner",
		v1alpha1.ConditionStalled:     "False AsExpected",
	} {
		if got[kind] != want {
			t.Errorf("%s is %q, want %q", kind, got[kind], want)
		}
	}
	seen = observing(1, observe.Learner{Job: newJob("one")})
	p := makePlan(run, seen, now)
	p.file = &contract.RunFile{}
	next = computeStatus(run, seen, p, now)
	if next.Restarts == nil || *next.Restarts != 0 || len(next.Attempts) != 2 {
		t.Errorf("%d attempts and %v restarts, want 2 and 0", len(next.Attempts), next.Restarts)
	}
}

// TestSecondPodOfAJob checks that Replaced is set if an earlier pod of the Job has run, and not if it never ran.
func TestSecondPodOfAJob(t *testing.T) {
	created := func(at time.Duration) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.CreationTimestamp, pod.Name = *ago(at), at.String() }
	}
	young := newPod(pending, created(time.Second))
	cases := map[string]struct {
		old  *corev1.Pod
		want bool
	}{
		"runs":      {newPod(created(time.Minute), deleted(time.Second)), true},
		"has ended": {newPod(created(time.Minute), exited(75, "Error", "")), true},
		"never ran": {newPod(created(time.Minute), pending, deleted(time.Second)), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, order := range [][]*corev1.Pod{{tc.old, young}, {young, tc.old}} {
				var l observe.Learner
				for _, pod := range order {
					l.Add(pod)
				}
				if l.Replaced != tc.want || l.Pod != young {
					t.Errorf("Replaced = %v with pod %s, want %v with pod %s", l.Replaced, l.Pod.Name, tc.want, young.Name)
				}
			}
		})
	}
}
