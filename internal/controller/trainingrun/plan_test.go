// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"cmp"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/controller/poller"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// outcome is the part of a plan that tests compare.
type outcome struct {
	Ending  contract.Cause
	Final   string
	Start   int32
	Backing bool
	Desired contract.Desired
	Deletes []string
	Workers bool
	Expire  bool
	Requeue time.Duration
}

func outcomeOf(p plan) outcome {
	got := outcome{Start: p.start, Backing: p.backingOff, Desired: p.desired, Workers: p.workers, Expire: p.expire,
		Requeue: p.requeue}
	if p.ending != nil {
		got.Ending = p.ending.Cause
	}
	if p.final != nil {
		got.Final = cmp.Or(string(p.final.Code), p.final.Reason())
	}
	for _, object := range p.deletes {
		got.Deletes = append(got.Deletes, object.GetName())
	}
	return got
}

func TestMakePlan(t *testing.T) {
	training := replying(contract.HeartbeatReply{Attempt: 1, Progress: contract.Progress{Phase: contract.PhaseTraining,
		Step: 5}})
	running := observe.Learner{Job: newJob("one"), Pod: newPod()}
	done := observe.Learner{Job: newJob("one"), Pod: newPod(exited(0, "Completed",
		verdictText(t, contract.Verdict{Cause: contract.CauseCompleted, Attempt: 1})))}
	crashed := observe.Learner{Job: newJob("one"), Pod: newPod(exited(1, "Error", ""))}
	complete := conditionIs(v1alpha1.ConditionComplete, "True", time.Minute)
	cases := map[string]struct {
		run  *v1alpha1.TrainingRun
		seen observe.State
		want outcome
	}{
		"a new run starts": {
			newRun(), observing(0, observe.Learner{}), outcome{Start: 1, Desired: contract.DesiredRun},
		},
		"a new run that is suspended rests": {
			newRun(suspend), observing(0, observe.Learner{}, func(o *observe.State) { o.Rollout = nil }),
			outcome{Desired: contract.DesiredDrain},
		},
		"a learner that trains continues": {
			newRun(attempts(inProgress(1))), observing(1, running, training),
			outcome{Desired: contract.DesiredRun, Workers: true, Requeue: maxRequeue},
		},
		"a learner that starts is looked at again at its deadline": {
			newRun(attempts(inProgress(1)), func(r *v1alpha1.TrainingRun) {
				r.Spec.FailurePolicy.StartDeadlineSeconds = new(int32(90))
			}),
			observing(1, observe.Learner{Job: newJob("one"), Pod: newPod(pending)}),
			outcome{Desired: contract.DesiredRun, Workers: true, Requeue: 31 * time.Second},
		},
		"a crash begins the next attempt at once, and the old Job stays for its log": {
			newRun(attempts(inProgress(1))), observing(1, crashed, training),
			outcome{Ending: contract.CauseCrashed, Start: 2, Desired: contract.DesiredRun, Workers: true},
		},
		"the log of a crash stays while the next attempt is in progress": {
			newRun(attempts(inProgress(2), endedAttempt(1, contract.CauseCrashed, 5, 5, time.Minute))),
			observing(2, observe.Learner{Job: newJob("two"), Pod: newPod(pending)},
				func(o *observe.State) { o.Learners[1] = crashed }),
			outcome{Desired: contract.DesiredRun, Workers: true, Requeue: maxRequeue},
		},
		"the log of a crash is deleted when the next attempt has ended": {
			newRun(attempts(endedAttempt(2, contract.CauseCrashed, 5, 5, 0), endedAttempt(1, contract.CauseCrashed, 5, 5,
				time.Minute))),
			observing(2, observe.Learner{Job: newJob("two"), Pod: newPod(exited(1, "Error", ""))},
				func(o *observe.State) { o.Learners[1] = crashed }),
			outcome{Backing: true, Desired: contract.DesiredRun, Deletes: []string{"one"}, Workers: true,
				Requeue: 10 * time.Second},
		},
		"the log of a crash is deleted when the run is suspended": {
			newRun(attempts(inProgress(2), endedAttempt(1, contract.CauseCrashed, 5, 5, time.Minute)), suspend),
			observing(2, observe.Learner{Job: newJob("two"), Pod: newPod()}, func(o *observe.State) { o.Learners[1] = crashed }),
			outcome{Desired: contract.DesiredDrain, Deletes: []string{"one"}, Workers: true, Requeue: drainUnreachable},
		},
		"a Job without a log is deleted": {
			newRun(attempts(inProgress(2), endedAttempt(1, contract.CauseCrashed, 5, 5, time.Minute))),
			observing(2, observe.Learner{Job: newJob("two"), Pod: newPod(pending)},
				func(o *observe.State) { o.Learners[1] = observe.Learner{Job: newJob("one")} }),
			outcome{Desired: contract.DesiredRun, Deletes: []string{"one"}, Workers: true, Requeue: maxRequeue},
		},
		"a second crash that got nowhere waits": {
			newRun(attempts(inProgress(2), endedAttempt(1, contract.CauseCrashed, 5, 5, time.Minute))),
			observing(2, observe.Learner{Job: newJob("two"), Pod: newPod(exited(1, "Error", ""))}),
			outcome{Ending: contract.CauseCrashed, Backing: true, Desired: contract.DesiredRun, Workers: true,
				Requeue: 10 * time.Second},
		},
		"a learner that lingers is ended while the next one waits": {
			newRun(attempts(v1alpha1.Attempt{Number: 2, StartTime: ago(time.Hour)}, endedAttempt(1, contract.CauseStartTimeout,
				0, 0, time.Hour))),
			observing(2, observe.Learner{Job: newJob("two"), Pod: newPod(pending)}),
			outcome{Ending: contract.CauseStartTimeout, Backing: true, Desired: contract.DesiredRun, Deletes: []string{"two"},
				Workers: true, Requeue: 10 * time.Second},
		},
		"what is left of a back-off is waited for": {
			newRun(attempts(endedAttempt(2, contract.CauseNodeLost, 5, 5, 4*time.Second),
				endedAttempt(1, contract.CauseNodeLost, 5, 5, time.Minute))), observing(0, observe.Learner{}),
			outcome{Backing: true, Desired: contract.DesiredRun, Workers: true, Requeue: 6 * time.Second},
		},
		"after the back-off the next attempt begins, and the old Job goes": {
			newRun(attempts(endedAttempt(2, contract.CauseNodeLost, 5, 5, time.Minute),
				endedAttempt(1, contract.CauseNodeLost, 5, 5, time.Minute))),
			observing(2, observe.Learner{Job: newJob("two"), Pod: nil}),
			outcome{Start: 3, Desired: contract.DesiredRun, Deletes: []string{"two"}, Workers: true},
		},
		"a missing Job of a recorded attempt is a lost attempt": {
			newRun(attempts(inProgress(1))), observing(0, observe.Learner{}),
			outcome{Ending: contract.CauseDisrupted, Start: 2, Desired: contract.DesiredRun, Workers: true},
		},
		"a Job that another manager may be about to create is waited for": {
			newRun(attempts(v1alpha1.Attempt{Number: 1, StartTime: ago(4 * time.Second)})), observing(0, observe.Learner{}),
			outcome{Desired: contract.DesiredRun, Workers: true, Requeue: 7 * time.Second},
		},
		"a pod on a silent node has its Job deleted": {
			newRun(attempts(inProgress(1))),
			observing(1, observe.Learner{Job: newJob("one"), Pod: newPod(deleted(time.Minute))}, training),
			outcome{Ending: contract.CauseNodeLost, Start: 2, Desired: contract.DesiredRun, Deletes: []string{"one"},
				Workers: true},
		},
		"a verdict of Completed ends the run": {
			newRun(attempts(inProgress(1))), observing(1, done, training),
			outcome{Ending: contract.CauseCompleted, Final: "Completed", Desired: contract.DesiredRun},
		},
		"Jobs of earlier attempts go whenever they are seen": {
			newRun(attempts(inProgress(2), endedAttempt(1, contract.CauseCrashed, 0, 1, time.Minute))),
			observing(2, observe.Learner{Job: newJob("two"), Pod: newPod()},
				func(o *observe.State) { o.Learners[1] = observe.Learner{Job: newJob("one")} }),
			outcome{Desired: contract.DesiredRun, Deletes: []string{"one"}, Workers: true,
				Requeue: poller.FreshFor + time.Second},
		},
		"Jobs of later attempts mean that this view is old": {
			newRun(attempts(inProgress(1))),
			observing(1, running, training, func(o *observe.State) { o.Learners[2] = observe.Learner{Job: newJob("two")} }),
			outcome{Desired: contract.DesiredRun, Workers: true, Requeue: maxRequeue},
		},
		"suspend drains first": {
			newRun(attempts(inProgress(1)), suspend), observing(1, running, training),
			outcome{Desired: contract.DesiredDrain, Workers: true, Requeue: drainUnreachable},
		},
		"a drain that takes its time is left to": {
			newRun(attempts(inProgress(1)), suspend, conditionIs(v1alpha1.ConditionSuspended, "Unknown", 5*time.Minute)),
			observing(1, running, training),
			outcome{Desired: contract.DesiredDrain, Workers: true, Requeue: drainUnreachable},
		},
		"a drain that takes too long is cut short": {
			newRun(attempts(inProgress(1)), suspend, conditionIs(v1alpha1.ConditionSuspended, "Unknown", 11*time.Minute)),
			observing(1, running, training),
			outcome{Desired: contract.DesiredDrain, Workers: true, Deletes: []string{"one"}, Requeue: maxRequeue},
		},
		"one that does not answer is not waited for as long": {
			newRun(attempts(inProgress(1)), suspend, conditionIs(v1alpha1.ConditionSuspended, "Unknown", time.Minute)),
			observing(1, running, silent),
			outcome{Desired: contract.DesiredDrain, Workers: true, Deletes: []string{"one"}, Requeue: maxRequeue},
		},
		"a drained run rests without pods": {
			newRun(attempts(endedAttempt(1, contract.CauseDrained, 0, 5, time.Second)), suspend),
			observing(1, observe.Learner{Job: newJob("one"), Pod: nil}),
			outcome{Desired: contract.DesiredDrain, Deletes: []string{"one", "rollout"}},
		},
		"an attempt that never ran ends at once when suspended": {
			newRun(attempts(inProgress(1)), suspend), observing(1,
				observe.Learner{Job: newJob("one"), Pod: newPod(pending, func(p *corev1.Pod) { p.Spec.NodeName = "" })}),
			outcome{Ending: contract.CauseDrained, Desired: contract.DesiredDrain, Deletes: []string{"one", "rollout"}},
		},
		"a start that takes too long": {
			newRun(attempts(v1alpha1.Attempt{Number: 1, StartTime: ago(16 * time.Minute)})),
			observing(1, observe.Learner{Job: newJob("one"), Pod: newPod(pending)}),
			outcome{Ending: contract.CauseStartTimeout, Start: 2, Desired: contract.DesiredRun, Deletes: []string{"one"},
				Workers: true},
		},
		"no progress for too long, by the learner's fresh words": {
			newRun(attempts(inProgress(1))), observing(1, running,
				replying(contract.HeartbeatReply{Attempt: 1, SecondsSinceProgress: 3601,
					Progress: contract.Progress{Phase: contract.PhaseTraining, Step: 5}})),
			outcome{Ending: contract.CauseStalled, Start: 2, Desired: contract.DesiredRun, Deletes: []string{"one"},
				Workers: true},
		},
		"no progress without workers is in order": {
			newRun(attempts(inProgress(1))), observing(1, running,
				replying(contract.HeartbeatReply{Attempt: 1, SecondsSinceProgress: 3601}),
				func(o *observe.State) { o.Rollout = nil }),
			outcome{Desired: contract.DesiredRun, Workers: true, Requeue: maxRequeue},
		},
		"a run without progress because of something that a person can repair is not stalled": {
			newRun(attempts(inProgress(1))), observing(1, running,
				replying(contract.HeartbeatReply{Attempt: 1, SecondsSinceProgress: 86400,
					Problems: []problem.Problem{{Code: problem.JudgeBlocked, Evidence: "status 401"}}})),
			outcome{Desired: contract.DesiredRun, Workers: true, Requeue: 2*time.Minute + time.Second},
		},
		"a run without progress because of the endpoint is not stalled": {
			newRun(attempts(inProgress(1))), observing(1, running,
				replying(contract.HeartbeatReply{Attempt: 1, SecondsSinceProgress: 3601,
					Problems: []problem.Problem{{Code: "PaymentRequired"}}})),
			outcome{Desired: contract.DesiredRun, Workers: true, Requeue: 2*time.Minute + time.Second},
		},
		"old words say nothing of a stall": {
			newRun(attempts(inProgress(1))), observing(1, running,
				repliedLongAgo(contract.HeartbeatReply{Attempt: 1, SecondsSinceProgress: 3601})),
			outcome{Desired: contract.DesiredRun, Workers: true, Requeue: 121 * time.Second},
		},
		"a learner that has not started is made anew with another pod": {
			newRun(attempts(inProgress(1)),
				func(r *v1alpha1.TrainingRun) { r.Spec.Tinker.APIKeySecretKeyRef.Name = "corrected" }),
			observing(1, observe.Learner{Job: templated(newJob("one")),
				Pod: newPod(waitingFor("CreateContainerConfigError", `secret "tinker" not found`))}),
			outcome{Ending: contract.CauseDrained, Start: 2, Desired: contract.DesiredRun, Deletes: []string{"one"},
				Workers: true},
		},
		"one that runs keeps its pod": {
			newRun(attempts(inProgress(1)), func(r *v1alpha1.TrainingRun) {
				r.Spec.Override(v1alpha1.TargetLearner).Image = "corrected"
			}),
			observing(1, observe.Learner{Job: templated(newJob("one")), Pod: newPod()}, training),
			outcome{Desired: contract.DesiredRun, Workers: true, Requeue: maxRequeue},
		},
		"one of the present spec waits": {
			newRun(attempts(inProgress(1))), observing(1, observe.Learner{Job: templated(newJob("one")), Pod: newPod(pending)}),
			outcome{Desired: contract.DesiredRun, Workers: true, Requeue: maxRequeue},
		},
		"a finished run is tidied up, its last learner stays": {
			newRun(attempts(endedAttempt(1, contract.CauseCompleted, 0, 60, time.Minute)), complete), observing(1, done),
			outcome{Desired: contract.DesiredRun, Deletes: []string{"rollout", "service"}},
		},
		"a finished run waits for its ttl": {
			newRun(attempts(endedAttempt(1, contract.CauseCompleted, 0, 60, time.Minute)), complete,
				func(r *v1alpha1.TrainingRun) {
					r.Spec.TTLSecondsAfterFinished, r.Status.CompletionTime = new(int32(100)), ago(time.Minute)
				}), observing(1, done),
			outcome{Desired: contract.DesiredRun, Deletes: []string{"rollout", "service"}, Requeue: 40 * time.Second},
		},
		"and goes when that is over": {
			newRun(attempts(endedAttempt(1, contract.CauseCompleted, 0, 60, time.Minute)), complete,
				func(r *v1alpha1.TrainingRun) {
					r.Spec.TTLSecondsAfterFinished, r.Status.CompletionTime = new(int32(60)), ago(time.Minute)
				}), observing(1, done),
			outcome{Desired: contract.DesiredRun, Deletes: []string{"rollout", "service"}, Expire: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := tc.run.DeepCopy()
			got := outcomeOf(makePlan(tc.run, tc.seen, now))
			if diff := gocmp.Diff(tc.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if diff := gocmp.Diff(before, tc.run); diff != "" {
				t.Errorf("makePlan changed the run (-before +after):\n%s", diff)
			}
		})
	}
}

// templated marks a learner's Job as made from newRun's spec.
func templated(job *batchv1.Job) *batchv1.Job {
	job.Annotations = desired.LearnerJob(newRun(), 1, "link", desired.Settings{}).Annotations
	return job
}

func TestPendingChanges(t *testing.T) {
	run := newRun(attempts(inProgress(1)), func(r *v1alpha1.TrainingRun) {
		r.Spec.Checkpoints.EverySteps, r.Spec.Rollouts.Concurrency = new(int64(7)), new(int32(9))
	})
	running := observe.Learner{Job: templated(newJob("one")), Pod: newPod()}
	pendingOf := func(l observe.Learner) []string {
		seen := observing(1, l, replying(contract.HeartbeatReply{Attempt: 1}))
		return computeStatus(run, seen, planned(run, seen), now).PendingChanges
	}
	if diff := gocmp.Diff([]string{"checkpoints", "rollouts.concurrency"}, pendingOf(running)); diff != "" {
		t.Errorf("pending changes (-want +got):\n%s", diff)
	}
	if got := pendingOf(observe.Learner{Job: newJob("one"), Pod: newPod()}); got != nil {
		t.Errorf("a Job of an earlier version has the pending changes %v", got)
	}
	if got := pendingOf(observe.Learner{Job: templated(newJob("one")), Pod: newPod(exited(1, "Error", ""))}); got != nil {
		t.Errorf("an attempt that ended has the pending changes %v", got)
	}
}

func TestRestartsCountWhatEndedByItself(t *testing.T) {
	suspended := conditionIs(v1alpha1.ConditionSuspended, "True", time.Minute)
	running := conditionIs(v1alpha1.ConditionSuspended, "False", time.Minute)
	neverRan := func(r *v1alpha1.TrainingRun) { r.Status.Attempts[0].FromStep = nil }
	resumed := func(r *v1alpha1.TrainingRun) {
		running(r)
		r.Status.Attempts[0].Reason = string(problem.StopRequested)
	}
	for name, tc := range map[string]struct {
		cause  contract.Cause
		change func(*v1alpha1.TrainingRun)
		want   int32
	}{
		"a suspension":                     {contract.CauseDrained, suspended, 3},
		"a suspension that has ended":      {contract.CauseDrained, resumed, 3},
		"a pod that was deleted":           {contract.CauseDrained, running, 4},
		"a pod that was changed before":    {contract.CauseDrained, neverRan, 3},
		"a Job that was refused":           {contract.CauseRefused, running, 3},
		"a crash":                          {contract.CauseCrashed, running, 4},
		"a crash, and a suspension by now": {contract.CauseCrashed, suspended, 4},
		"a lost node":                      {contract.CauseNodeLost, running, 4},
	} {
		run := newRun(attempts(endedAttempt(7, tc.cause, 1, 2, time.Hour)), tc.change,
			func(r *v1alpha1.TrainingRun) { r.Status.Restarts = new(int32(3)) })
		seen := observing(0, observe.Learner{})
		if got := *computeStatus(run, seen, planned(run, seen), now).Restarts; got != tc.want {
			t.Errorf("%d restarts after %s, want %d", got, name, tc.want)
		}
	}
}
