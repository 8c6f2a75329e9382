// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/controller/refusal"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// refusedAs records that the API server refused the learner's Job of a generation of the run.
func refusedAs(code problem.Code, generation int64) func(*observe.State) {
	return func(seen *observe.State) {
		seen.Refused = refusal.Try{Problem: problem.Problem{Code: code, Evidence: "the API server's words"},
			Generation: generation, At: now}
	}
}

// refuseUntil reconciles a run with a refused learner's Job, second by second, and returns how many attempts it makes.
func refuseUntil(t *testing.T, run *v1alpha1.TrainingRun, code problem.Code, d time.Duration) int {
	t.Helper()
	made := 0
	seen := observing(0, observe.Learner{})
	for at := now; at.Sub(now) < d; at = at.Add(time.Second) {
		p := makePlan(run, seen, at)
		p.file = &contract.RunFile{}
		run.Status = computeStatus(run, seen, p, at)
		if p.start > 0 {
			made++
			refusedAs(code, run.Generation)(&seen)
		}
	}
	return made
}

func TestRefusedJobWaitsForTheRepair(t *testing.T) {
	run := newRun()
	made := refuseUntil(t, run, problem.CreateRefused, 10*time.Minute)
	if made < 12 || made > 14 {
		t.Errorf("%d attempts in ten minutes, want one every 46 s", made)
	}
	if n := len(run.Status.Attempts); n > 2 {
		t.Errorf("%d entries of attempts, want one for all that were refused", n)
	}
	if n := run.Status.FailuresSinceCheckpoint; n != nil && *n != 0 {
		t.Errorf("refused Jobs cost %d of the restart budget", *n)
	}
	for _, kind := range []string{v1alpha1.ConditionProgressing, v1alpha1.ConditionStalled, v1alpha1.ConditionReady} {
		c := meta.FindStatusCondition(run.Status.Conditions, kind)
		if c.Reason != v1alpha1.ReasonCreateRefused || !strings.Contains(c.Message, "the API server's words") {
			t.Errorf("%s says %s %q", kind, c.Reason, c.Message)
		}
	}
	// Once the Job is accepted, the message of the refusal ends, although the learner has not loaded a state yet.
	if run.Status.Attempts[0].CompletionTime != nil {
		run.Status.Attempts = append([]v1alpha1.Attempt{inProgress(status.NewestAttempt(run) + 1)}, run.Status.Attempts...)
	}
	seen := observing(status.NewestAttempt(run), observe.Learner{Job: newJob("job"), Pod: newPod(pending)})
	next := computeStatus(run, seen, makePlan(run, seen, now), now)
	if got := conditionOf(next, v1alpha1.ConditionStalled); got != "False AsExpected" {
		t.Errorf("Stalled = %s once the Job exists", got)
	}
}

func TestRefusedJobIsStalledAfterTheGracePeriod(t *testing.T) {
	run := newRun()
	refuseUntil(t, run, problem.CreateRefused, time.Minute)
	if got := conditionOf(run.Status, v1alpha1.ConditionStalled); got != "False AsExpected" {
		t.Errorf("after a minute: Stalled = %s", got)
	}
	if got := conditionOf(run.Status, v1alpha1.ConditionReady); got != "False CreateRefused" {
		t.Errorf("after a minute: Ready = %s", got)
	}
}

func TestInvalidJobMakesNoFurtherAttempts(t *testing.T) {
	run := newRun()
	if made := refuseUntil(t, run, problem.SpecRefused, 2*time.Hour); made != 1 {
		t.Errorf("%d attempts in two hours, want 1", made)
	}
	for _, kind := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionStalled, v1alpha1.ConditionReady} {
		c := meta.FindStatusCondition(run.Status.Conditions, kind)
		if c.Reason != v1alpha1.ReasonPodInvalid || !strings.Contains(c.Message, "the API server's words") ||
			!strings.Contains(c.Message, "podOverrides[target=Learner]") {
			t.Errorf("%s says %s %q", kind, c.Reason, c.Message)
		}
	}
	// A new manager remembers no refusal. Its chart may have other settings of pods, and the former ones may have been at
	// fault.
	later, seen := run.DeepCopy(), observing(0, observe.Learner{})
	if p := makePlan(later, seen, now.Add(3*time.Hour)); p.start != 2 {
		t.Errorf("a new manager begins attempt %d of a spec that another one could not start, want 2", p.start)
	}
	if made := refuseUntil(t, later, problem.SpecRefused, time.Hour); made != 1 {
		t.Errorf("a new manager makes %d attempts in an hour, want 1", made)
	}
	if got := later.Status.Attempts; len(got) != 1 || got[0].Count != 2 {
		t.Errorf("the attempts are %+v, want one entry for both", got)
	}
	run.Generation++
	if p := makePlan(run, seen, now.Add(3*time.Hour)); p.start != 2 {
		t.Errorf("attempt %d follows on a change of the spec, want 2", p.start)
	}
}

func TestRefusedPodOfLearner(t *testing.T) {
	refused := func(seen *observe.State) {
		seen.LearnerObstacle = problem.Problem{Code: problem.CreateRefused, Evidence: "exceeded quota"}
	}
	began := func(d time.Duration) *v1alpha1.TrainingRun {
		return newRun(attempts(v1alpha1.Attempt{Number: 1, StartTime: ago(d)}))
	}
	for name, tc := range map[string]struct {
		age     time.Duration
		stalled string
	}{
		"at first":             {time.Minute, "False AsExpected"},
		"after the grace":      {3 * time.Minute, "True CreateRefused"},
		"after start deadline": {time.Hour, "True CreateRefused"},
	} {
		t.Run(name, func(t *testing.T) {
			run, seen := began(tc.age), observing(1, observe.Learner{Job: newJob("one"), Pod: nil}, refused)
			p := makePlan(run, seen, now)
			if p.ending != nil {
				t.Fatalf("the attempt ends (%s), want it to wait with its Job", p.ending.Cause)
			}
			next := computeStatus(run, seen, p, now)
			for kind, want := range map[string]string{
				v1alpha1.ConditionPodsReady: "False CreateRefused", v1alpha1.ConditionProgressing: "False CreateRefused",
				v1alpha1.ConditionReady: "False CreateRefused", v1alpha1.ConditionStalled: tc.stalled,
			} {
				if got := conditionOf(next, kind); got != want {
					t.Errorf("%s = %s, want %s", kind, got, want)
				}
			}
		})
	}
	pod := newPod(pending)
	pod.CreationTimestamp = *ago(time.Minute)
	if p := makePlan(began(time.Hour), observing(1, observe.Learner{Job: newJob("one"), Pod: pod}), now); p.ending != nil {
		t.Errorf("a pod that was accepted a minute ago ends the attempt: %s", p.ending.Cause)
	}
}

func TestRefusedWorkers(t *testing.T) {
	reply := replying(contract.HeartbeatReply{Attempt: 1, Progress: contract.Progress{Phase: contract.PhaseTraining,
		Lineage: "a"}})
	noJob := func(seen *observe.State) { seen.Rollout = nil }
	jobRefused := func(code problem.Code) func(*observe.State) {
		return func(seen *observe.State) {
			seen.RefusedWorkers = refusal.Try{Problem: problem.Problem{Code: code, Evidence: "the API server's words"},
				Generation: 3, At: now}
		}
	}
	podsRefused := func(ready int32) func(*observe.State) {
		return func(seen *observe.State) {
			seen.Rollout.Status = batchv1.JobStatus{Ready: new(ready)}
			seen.WorkersObstacle = problem.Problem{Code: problem.ImagePullFailed, Evidence: "the API server's words"}
		}
	}
	for name, tc := range map[string]struct {
		seen                  []func(*observe.State)
		rollouts, progressing string
	}{
		"an invalid Job": {[]func(*observe.State){noJob, jobRefused("SpecRefused")}, "False PodInvalid",
			"False PodInvalid"},
		"a quota of Jobs": {[]func(*observe.State){noJob, jobRefused("CreateRefused")}, "False CreateRefused",
			"False CreateRefused"},
		"no worker can start": {[]func(*observe.State){podsRefused(0)}, "False ImagePullFailed", "False ImagePullFailed"},
		"one worker runs":     {[]func(*observe.State){podsRefused(1)}, "False ImagePullFailed", "True Progressing"},
	} {
		t.Run(name, func(t *testing.T) {
			run := newRun(attempts(inProgress(1)))
			seen := observing(1, observe.Learner{Job: newJob("one"), Pod: newPod()}, append(tc.seen, reply)...)
			run.Status = computeStatus(run, seen, makePlan(run, seen, now), now)
			if got := conditionOf(run.Status, v1alpha1.ConditionPodsReady); got != tc.rollouts {
				t.Errorf("PodsReady = %s, want %s", got, tc.rollouts)
			}
			if got := conditionOf(run.Status, v1alpha1.ConditionProgressing); got != tc.progressing {
				t.Errorf("Progressing = %s, want %s", got, tc.progressing)
			}
			if c := meta.FindStatusCondition(run.Status.Conditions,
				v1alpha1.ConditionPodsReady); !strings.Contains(c.Message, "the API server's words") {
				t.Errorf("PodsReady says %q", c.Message)
			}
			later := now.Add(3 * time.Minute)
			seen.Heartbeat.At = later
			next := computeStatus(run, seen, makePlan(run, seen, later), later)
			if is, want := meta.IsStatusConditionTrue(next.Conditions, v1alpha1.ConditionStalled),
				strings.HasPrefix(tc.progressing, "False"); is != want {
				t.Errorf("Stalled = %v after three minutes, want %v", is, want)
			}
			seen.RefusedWorkers = refusal.Try{} // A new manager remembers no refusal.
			next = computeStatus(run, seen, makePlan(run, seen, now), now)
			if got := conditionOf(next, v1alpha1.ConditionPodsReady); got != tc.rollouts {
				t.Errorf("PodsReady = %s by a new manager, want %s", got, tc.rollouts)
			}
		})
	}
}
