// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/controller/podstate"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// refusing is a learner of an attempt whose key the endpoint refuses.
func refusing(t *testing.T, attempt int32, cause contract.Cause) observe.Learner {
	t.Helper()
	v := contract.Verdict{Cause: cause, Reason: "KeyRefused", Message: "401", Attempt: attempt}
	return observe.Learner{Job: newJob("job"), Pod: newPod(exited(int32(cause.ExitCode()), "Error", verdictText(t, v)))}
}

// TestRefusedKeyWaitsForTheRepair checks that a run makes one attempt every 45 s while its key is refused, for an hour,
// and then continues by itself.
func TestRefusedKeyWaitsForTheRepair(t *testing.T) {
	for _, cause := range []contract.Cause{contract.CauseUpstream, contract.CauseConfigRejected} {
		run := newRun(attempts(v1alpha1.Attempt{Number: 7, StartTime: ago(time.Hour), FromStep: new(int64(0)),
			ToStep: new(int64(169))}))
		start, at, made := now, now, 0
		for at.Sub(start) < time.Hour {
			newest := status.NewestAttempt(run)
			seen := observing(newest, refusing(t, newest, cause))
			p := makePlan(run, seen, at)
			p.file = &contract.RunFile{}
			run.Status = computeStatus(run, seen, p, at)
			want := "False AsExpected"
			if at.Sub(start) >= 2*time.Minute {
				want = "True KeyRefused"
			}
			if got := conditionOf(run.Status, v1alpha1.ConditionStalled); got != want {
				t.Fatalf("%s: after %v Stalled = %s, want %s", cause, at.Sub(start), got, want)
			}
			if c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionReady); c.Reason != "KeyRefused" ||
				!strings.Contains(c.Message, `key "k" of Secret "tinker"`) {
				t.Fatalf("%s: after %v Ready has the reason %s and says %q, want the repair", cause, at.Sub(start), c.Reason,
					c.Message)
			}
			if p.start == 0 && p.requeue == 0 {
				t.Fatalf("the run waits without a requeue: got %+v", outcomeOf(p))
			}
			if p.start > 0 {
				made++
				at = at.Add(3 * time.Second)
			}
			at = at.Add(p.requeue)
		}
		if made > 80 || made < 60 {
			t.Errorf("%s: %d attempts in an hour, want one every 48 s", cause, made)
		}
		if n := len(run.Status.Attempts); n > 3 {
			t.Errorf("%s: %d entries of attempts, want one for all that ended alike", cause, n)
		}
		if n := run.Status.Attempts[1].Count + run.Status.Attempts[0].Count; int(n) < made-1 {
			t.Errorf("%s: count = %d after %d attempts", cause, n, made)
		}
		if n := run.Status.FailuresSinceCheckpoint; n != nil && *n != 0 {
			t.Errorf("%s: a refused key costs %d of the restart budget", cause, *n)
		}
		newest := status.NewestAttempt(run)
		reply := contract.HeartbeatReply{Attempt: newest, Progress: contract.Progress{Phase: contract.PhaseTraining,
			Step: 169, FromStep: 169, Steps: 200, Lineage: "a", WorkersSeen: 2}}
		if run.Status.Attempts[0].CompletionTime != nil {
			continue
		}
		seen := observing(newest, observe.Learner{Job: newJob("job"), Pod: newPod()}, replying(reply))
		run.Status = computeStatus(run, seen, makePlan(run, seen, now), now)
		if got := conditionOf(run.Status, v1alpha1.ConditionStalled); got != "False AsExpected" {
			t.Errorf("%s: Stalled = %s once a learner trains", cause, got)
		}
	}
}

// TestRefusedKeyIsReadAgainWithinAMinute checks that the next attempt begins within 45 s and the time to make a pod,
// even if a learner tries the key of its own pod for a while before it ends. The pod of the next attempt has the key
// that the Secret has by then.
func TestRefusedKeyIsReadAgainWithinAMinute(t *testing.T) {
	for name, tc := range map[string]struct {
		lasted, want time.Duration
	}{
		"a learner that ended at once":                   {0, 45 * time.Second},
		"a learner that tried the key for 20 seconds":    {20 * time.Second, 25 * time.Second},
		"a learner that tried the key for its patience":  {47 * time.Second, 0},
		"a learner that ran for an hour, and then ended": {time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			run := newRun(attempts(v1alpha1.Attempt{
				Number: 7, StartTime: ago(tc.lasted + 3*time.Second), CompletionTime: ago(0),
				Cause: string(contract.CauseUpstream), Reason: "KeyRefused",
			}))
			refused := refusing(t, 7, contract.CauseUpstream)
			ended := podstate.Termination(refused.Pod, desired.LearnerContainer)
			ended.StartedAt, ended.FinishedAt = *ago(tc.lasted), *ago(0)
			p := makePlan(run, observing(7, refused), now)
			if got := p.start == 8; got != (tc.want == 0) {
				t.Errorf("attempt 8 starts: %t, want it after %v", got, tc.want)
			}
			if tc.want > 0 && p.requeue != tc.want {
				t.Errorf("the next attempt begins after %v, want %v", p.requeue, tc.want)
			}
		})
	}
}

func TestRetryContinuesAFailedRun(t *testing.T) {
	failed := func(changes ...func(*v1alpha1.TrainingRun)) *v1alpha1.TrainingRun {
		run := newRun(append([]func(*v1alpha1.TrainingRun){
			attempts(endedAttempt(6, contract.CauseCrashed, 5, 5, time.Second), endedAttempt(5, contract.CauseCrashed, 5, 5,
				time.Minute), endedAttempt(4, contract.CauseCrashed, 5, 5, time.Minute)),
			conditionIs(v1alpha1.ConditionFailed, "True", time.Minute), conditionIs(v1alpha1.ConditionStalled, "True",
				time.Minute),
			func(r *v1alpha1.TrainingRun) {
				r.Spec.RetryGeneration, r.Spec.TTLSecondsAfterFinished = new(int32(1)), new(int32(1))
				r.Status.CompletionTime, r.Status.FailuresSinceCheckpoint = ago(time.Minute), new(int32(6))
			},
		}, changes...)...)
		return run
	}
	run := failed()
	seen := observing(6, observe.Learner{Job: newJob("six"), Pod: newPod(exited(1, "Error", ""))})
	p := makePlan(run, seen, now)
	if p.start != 7 || p.expire || p.backingOff {
		t.Fatalf("plan = %+v, want attempt 7 at once", outcomeOf(p))
	}
	p.file = &contract.RunFile{}
	next := computeStatus(run, seen, p, now)
	if f, s := conditionOf(next, v1alpha1.ConditionFailed),
		conditionOf(next, v1alpha1.ConditionStalled); f != "False AsExpected" || s != "False AsExpected" {
		t.Errorf("Failed = %s, Stalled = %s; want both False", f, s)
	}
	if next.CompletionTime != nil || *next.FailuresSinceCheckpoint != 0 || *next.ObservedRetryGeneration != 1 ||
		!next.StartTime.Equal(run.Status.StartTime) {
		t.Errorf("completionTime = %v, failures = %d, observedRetryGeneration = %d, startTime = %v", next.CompletionTime,
			*next.FailuresSinceCheckpoint, *next.ObservedRetryGeneration, next.StartTime)
	}
	// One more crash at the step does not end the run, since the retry reset the restart budget.
	run.Status = next
	seen = observing(7, observe.Learner{Job: newJob("seven"), Pod: newPod(exited(1, "Error", ""))})
	if p := makePlan(run, seen, now); p.final != nil {
		t.Errorf("the first crash after the retry ends the run: %s", p.final.Reason())
	}
}

func TestRetryOfARunThatHasNotFailed(t *testing.T) {
	retry := func(r *v1alpha1.TrainingRun) { r.Spec.RetryGeneration = new(int32(3)) }
	run := newRun(attempts(inProgress(1)), retry)
	seen := observing(1, runningFor(time.Hour), replying(trainingReply))
	p := makePlan(run, seen, now)
	if p.start != 0 || p.ending != nil {
		t.Errorf("plan of a run in progress = %+v", outcomeOf(p))
	}
	run.Status = computeStatus(run, seen, p, now)
	if *run.Status.ObservedRetryGeneration != 3 {
		t.Errorf("observedRetryGeneration = %d, want 3: a later failure is not retried by itself",
			*run.Status.ObservedRetryGeneration)
	}
	complete := newRun(attempts(endedAttempt(1, contract.CauseCompleted, 0, 60, time.Minute)),
		conditionIs(v1alpha1.ConditionComplete, "True", time.Minute), retry)
	if p := makePlan(complete, observing(1, observe.Learner{Job: newJob("one"), Pod: nil}), now); p.start != 0 {
		t.Errorf("a complete run is tried again: got %v, want 0", p.start)
	}
}

// TestNextAttemptKnowsTheVerdict checks that the next attempt's run file is made from the status that includes the
// ending.
func TestNextAttemptKnowsTheVerdict(t *testing.T) {
	run := newRun(attempts(inProgress(1)), func(r *v1alpha1.TrainingRun) {
		r.Status.Checkpoints = []v1alpha1.Checkpoint{{Step: 5, State: "tinker://m/weights/5"}}
	})
	verdict := contract.Verdict{Cause: contract.CauseDrained, Attempt: 1, Progress: contract.Progress{
		Phase: contract.PhaseTraining, Step: 9, Lineage: "a",
		Checkpoints:  []contract.Checkpoint{{Step: 9, State: "tinker://m/weights/9"}},
		Capabilities: &contract.Capabilities{BaseURL: "http://tinkersim", Model: "m", Supported: []string{"seed"}},
	}}
	seen := observing(1, observe.Learner{Job: newJob("one"), Pod: newPod(exited(75, "Error", verdictText(t, verdict)))})
	p := makePlan(run, seen, now)
	if p.start != 2 || p.next == nil || p.next.Checkpoints[0].Step != 9 || p.next.Capabilities == nil {
		t.Errorf("attempt %d is made from the status %+v, want checkpoint 9 and the capabilities in it", p.start, p.next)
	}
}

// TestMissingImageIsPulledForAnotherPod runs an hour with an image that cannot be pulled. The kubelet's own tries would
// be five minutes apart by then; the run makes another pod every 45 s, which costs no restart, and continues with the
// first that runs.
func TestMissingImageIsPulledForAnotherPod(t *testing.T) {
	run := newRun(attempts(v1alpha1.Attempt{Number: 1, StartTime: ago(0)}))
	at, created, made := now, now, 0
	waits := func(newest int32) observe.State {
		pod := newPod(waitingFor("ImagePullBackOff", "Back-off pulling image"))
		pod.CreationTimestamp = metav1.NewTime(created)
		return observing(newest, observe.Learner{Job: newJob("job"), Pod: pod})
	}
	for at.Sub(now) < time.Hour {
		newest := status.NewestAttempt(run)
		seen := waits(newest)
		p := makePlan(run, seen, at)
		p.file = &contract.RunFile{}
		run.Status = computeStatus(run, seen, p, at)
		want := "False AsExpected"
		if at.Sub(now) >= 2*time.Minute {
			want = "True ImagePullFailed"
		}
		if got := conditionOf(run.Status, v1alpha1.ConditionStalled); got != want {
			t.Fatalf("after %v Stalled = %s, want %s", at.Sub(now), got, want)
		}
		for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionPodsReady} {
			if c := meta.FindStatusCondition(run.Status.Conditions, kind); c.Reason != "ImagePullFailed" ||
				!strings.Contains(c.Message, "podOverrides[target=Learner].image") {
				t.Fatalf("after %v %s has the reason %s and says %q, want the image", at.Sub(now), kind, c.Reason, c.Message)
			}
		}
		switch {
		case p.start > 0:
			if age := at.Sub(created); age < 45*time.Second || age > 50*time.Second {
				t.Fatalf("a pod is replaced at the age of %v, want 45 s", age)
			}
			made, created = made+1, at
		case p.requeue <= 0 || p.requeue > 45*time.Second:
			t.Fatalf("the run is reconciled again after %v", p.requeue)
		default:
			at = at.Add(p.requeue)
		}
	}
	if made < 70 || len(run.Status.Attempts) > 3 || ptr.Deref(run.Status.FailuresSinceCheckpoint, 0) != 0 {
		t.Errorf("%d pods in an hour, %d entries of attempts, %d failures", made, len(run.Status.Attempts),
			ptr.Deref(run.Status.FailuresSinceCheckpoint, 0))
	}
	newest := status.NewestAttempt(run)
	seen := observing(newest, observe.Learner{Job: newJob("job"), Pod: newPod()})
	p := makePlan(run, seen, at)
	run.Status = computeStatus(run, seen, p, at)
	if got := conditionOf(run.Status, v1alpha1.ConditionStalled); got != "False AsExpected" || p.start != 0 {
		t.Errorf("once the learner runs, Stalled = %s and attempt %d starts", got, p.start)
	}
}

// TestUnschedulablePodIsNotReplaced runs ten minutes with a pod that fits nowhere: the scheduler itself binds it once a
// node fits, so that neither the attempt nor its pod is replaced until then.
func TestUnschedulablePodIsNotReplaced(t *testing.T) {
	run := newRun(attempts(v1alpha1.Attempt{Number: 1, StartTime: ago(0)}))
	for waited := time.Duration(0); waited < 10*time.Minute; waited += 15 * time.Second {
		pod := newPod(pending, unschedulableFor(0))
		pod.CreationTimestamp = metav1.NewTime(now)
		seen := observing(1, observe.Learner{Job: newJob("job"), Pod: pod})
		p := makePlan(run, seen, now.Add(waited))
		if p.ending != nil || p.start != 0 || len(p.deletes) > 0 {
			t.Fatalf("after %v the plan is %+v, want to wait", waited, outcomeOf(p))
		}
		run.Status = computeStatus(run, seen, p, now.Add(waited))
		want := "False AsExpected"
		if waited >= 2*time.Minute {
			want = "True Unschedulable"
		}
		if got := conditionOf(run.Status, v1alpha1.ConditionStalled); got != want {
			t.Fatalf("after %v Stalled = %s, want %s", waited, got, want)
		}
	}
	seen := observing(1, observe.Learner{Job: newJob("job"), Pod: newPod()})
	later := now.Add(10 * time.Minute)
	p := makePlan(run, seen, later)
	run.Status = computeStatus(run, seen, p, later)
	if got := conditionOf(run.Status, v1alpha1.ConditionStalled); got != "False AsExpected" ||
		len(run.Status.Attempts) != 1 || p.start != 0 {
		t.Errorf("once a node fits, Stalled = %s, %d attempts, and attempt %d starts", got, len(run.Status.Attempts), p.start)
	}
}
