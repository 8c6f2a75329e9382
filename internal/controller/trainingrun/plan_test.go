// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// told is what a plan comes to, for comparing.
type told struct {
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

func tell(p plan) told {
	got := told{Start: p.start, Backing: p.backingOff, Desired: p.desired, Workers: p.workers, Expire: p.expire, Requeue: p.requeue}
	if p.ending != nil {
		got.Ending = p.ending.cause
	}
	if p.final != nil {
		got.Final = p.final.reason
	}
	for _, object := range p.deletes {
		got.Deletes = append(got.Deletes, object.GetName())
	}
	return got
}

func TestMakePlan(t *testing.T) {
	training := saying(contract.HeartbeatReply{Attempt: 1, Progress: contract.Progress{Phase: contract.PhaseTraining, Step: 5}})
	running := learner{aJob("one"), aPod()}
	done := learner{aJob("one"), aPod(exited(0, "Completed", verdictText(t, contract.Verdict{Cause: contract.CauseCompleted, Attempt: 1})))}
	crashed := learner{aJob("one"), aPod(exited(1, "Error", ""))}
	complete := conditionIs(v1alpha1.ConditionComplete, "True", time.Minute)
	cases := map[string]struct {
		run  *v1alpha1.TrainingRun
		seen observed
		want told
	}{
		"a new run starts": {
			aRun(), seeing(0, learner{}), told{Start: 1, Desired: contract.DesiredRun},
		},
		"a new run that is suspended rests": {
			aRun(suspend), seeing(0, learner{}, func(o *observed) { o.rollout = nil }), told{Desired: contract.DesiredDrain},
		},
		"a learner that trains goes on": {
			aRun(attempts(underWay(1))), seeing(1, running, training),
			told{Desired: contract.DesiredRun, Workers: true, Requeue: lookAgain},
		},
		"a learner that starts is looked at again at its deadline": {
			aRun(attempts(underWay(1)), func(r *v1alpha1.TrainingRun) { r.Spec.FailurePolicy.StartDeadlineSeconds = new(int32(90)) }),
			seeing(1, learner{aJob("one"), aPod(pending)}),
			told{Desired: contract.DesiredRun, Workers: true, Requeue: 31 * time.Second},
		},
		"a crash begins the next attempt at once": {
			aRun(attempts(underWay(1))), seeing(1, crashed, training),
			told{Ending: contract.CauseCrashed, Start: 2, Desired: contract.DesiredRun, Deletes: []string{"one"}, Workers: true},
		},
		"a second crash that got nowhere waits": {
			aRun(attempts(underWay(2), over(1, contract.CauseCrashed, 5, 5, time.Minute))), seeing(2, learner{aJob("two"), aPod(exited(1, "Error", ""))}),
			told{Ending: contract.CauseCrashed, Backing: true, Desired: contract.DesiredRun, Workers: true, Requeue: 10 * time.Second},
		},
		"a learner that lingers is ended while the next one waits": {
			aRun(attempts(v1alpha1.Attempt{Number: 2, StartTime: ago(time.Hour)}, over(1, contract.CauseStartTimeout, 0, 0, time.Hour))),
			seeing(2, learner{aJob("two"), aPod(pending)}),
			told{Ending: contract.CauseStartTimeout, Backing: true, Desired: contract.DesiredRun, Deletes: []string{"two"}, Workers: true, Requeue: 10 * time.Second},
		},
		"what is left of a back-off is waited for": {
			aRun(attempts(over(2, contract.CauseNodeLost, 5, 5, 4*time.Second), over(1, contract.CauseNodeLost, 5, 5, time.Minute))), seeing(0, learner{}),
			told{Backing: true, Desired: contract.DesiredRun, Workers: true, Requeue: 6 * time.Second},
		},
		"after the back-off the next attempt begins, and the old Job goes": {
			aRun(attempts(over(2, contract.CauseNodeLost, 5, 5, time.Minute), over(1, contract.CauseNodeLost, 5, 5, time.Minute))), seeing(2, learner{aJob("two"), nil}),
			told{Start: 3, Desired: contract.DesiredRun, Deletes: []string{"two"}, Workers: true},
		},
		"a missing Job of a recorded attempt is a lost attempt": {
			aRun(attempts(underWay(1))), seeing(0, learner{}),
			told{Ending: contract.CauseDisrupted, Start: 2, Desired: contract.DesiredRun, Workers: true},
		},
		"a pod on a silent node has its Job deleted": {
			aRun(attempts(underWay(1))),
			seeing(1, learner{aJob("one"), aPod(deleted(time.Minute))}, training),
			told{Ending: contract.CauseNodeLost, Start: 2, Desired: contract.DesiredRun, Deletes: []string{"one"}, Workers: true},
		},
		"a verdict of Completed ends the run": {
			aRun(attempts(underWay(1))), seeing(1, done, training),
			told{Ending: contract.CauseCompleted, Final: "Completed", Desired: contract.DesiredRun},
		},
		"Jobs of earlier attempts go whenever they are seen": {
			aRun(attempts(underWay(2), over(1, contract.CauseCrashed, 0, 1, time.Minute))),
			seeing(2, learner{aJob("two"), aPod()}, func(o *observed) { o.learners[1] = learner{job: aJob("one")} }),
			told{Desired: contract.DesiredRun, Deletes: []string{"one"}, Workers: true, Requeue: lookAgain},
		},
		"Jobs of later attempts mean that this view is old": {
			aRun(attempts(underWay(1))),
			seeing(1, running, training, func(o *observed) { o.learners[2] = learner{job: aJob("two")} }),
			told{Desired: contract.DesiredRun, Workers: true, Requeue: lookAgain},
		},
		"suspend drains first": {
			aRun(attempts(underWay(1)), suspend), seeing(1, running, training),
			told{Desired: contract.DesiredDrain, Workers: true, Requeue: drainUnreachable},
		},
		"a drain that takes its time is left to": {
			aRun(attempts(underWay(1)), suspend, conditionIs(v1alpha1.ConditionSuspended, "Unknown", 5*time.Minute)), seeing(1, running, training),
			told{Desired: contract.DesiredDrain, Workers: true, Requeue: drainUnreachable},
		},
		"a drain that takes too long is cut short": {
			aRun(attempts(underWay(1)), suspend, conditionIs(v1alpha1.ConditionSuspended, "Unknown", 11*time.Minute)), seeing(1, running, training),
			told{Desired: contract.DesiredDrain, Workers: true, Deletes: []string{"one"}, Requeue: lookAgain},
		},
		"one that does not answer is not waited for as long": {
			aRun(attempts(underWay(1)), suspend, conditionIs(v1alpha1.ConditionSuspended, "Unknown", time.Minute)), seeing(1, running),
			told{Desired: contract.DesiredDrain, Workers: true, Deletes: []string{"one"}, Requeue: lookAgain},
		},
		"a drained run rests without pods": {
			aRun(attempts(over(1, contract.CauseDrained, 0, 5, time.Second)), suspend), seeing(1, learner{aJob("one"), nil}),
			told{Desired: contract.DesiredDrain, Deletes: []string{"one", "rollout"}},
		},
		"an attempt that never ran ends at once when suspended": {
			aRun(attempts(underWay(1)), suspend), seeing(1, learner{aJob("one"), aPod(pending, func(p *corev1.Pod) { p.Spec.NodeName = "" })}),
			told{Ending: contract.CauseDrained, Desired: contract.DesiredDrain, Deletes: []string{"one", "rollout"}},
		},
		"a start that takes too long": {
			aRun(attempts(v1alpha1.Attempt{Number: 1, StartTime: ago(16 * time.Minute)})), seeing(1, learner{aJob("one"), aPod(pending)}),
			told{Ending: contract.CauseStartTimeout, Start: 2, Desired: contract.DesiredRun, Deletes: []string{"one"}, Workers: true},
		},
		"no progress for too long, by the learner's fresh words": {
			aRun(attempts(underWay(1))), seeing(1, running, saying(contract.HeartbeatReply{Attempt: 1, SecondsSinceProgress: 3601, Progress: contract.Progress{Phase: contract.PhaseTraining, Step: 5}})),
			told{Ending: contract.CauseStalled, Start: 2, Desired: contract.DesiredRun, Deletes: []string{"one"}, Workers: true},
		},
		"no progress without workers is in order": {
			aRun(attempts(underWay(1))), seeing(1, running, saying(contract.HeartbeatReply{Attempt: 1, SecondsSinceProgress: 3601}), func(o *observed) { o.rollout = nil }),
			told{Desired: contract.DesiredRun, Workers: true, Requeue: time.Second},
		},
		"no progress for upstream's sake is no stall": {
			aRun(attempts(underWay(1))), seeing(1, running, saying(contract.HeartbeatReply{Attempt: 1, SecondsSinceProgress: 3601, Upstream: "payment"})),
			told{Desired: contract.DesiredRun, Workers: true, Requeue: time.Second},
		},
		"old words say nothing of a stall": {
			aRun(attempts(underWay(1))), seeing(1, running, saidLongAgo(contract.HeartbeatReply{Attempt: 1, SecondsSinceProgress: 3601})),
			told{Desired: contract.DesiredRun, Workers: true, Requeue: lookAgain},
		},
		"a finished run is tidied up, its last learner stays": {
			aRun(attempts(over(1, contract.CauseCompleted, 0, 60, time.Minute)), complete), seeing(1, done),
			told{Desired: contract.DesiredRun, Deletes: []string{"rollout", "service"}},
		},
		"a finished run waits for its ttl": {
			aRun(attempts(over(1, contract.CauseCompleted, 0, 60, time.Minute)), complete, func(r *v1alpha1.TrainingRun) {
				r.Spec.TTLSecondsAfterFinished, r.Status.CompletionTime = new(int32(100)), ago(time.Minute)
			}), seeing(1, done),
			told{Desired: contract.DesiredRun, Deletes: []string{"rollout", "service"}, Requeue: 40 * time.Second},
		},
		"and goes when that is over": {
			aRun(attempts(over(1, contract.CauseCompleted, 0, 60, time.Minute)), complete, func(r *v1alpha1.TrainingRun) {
				r.Spec.TTLSecondsAfterFinished, r.Status.CompletionTime = new(int32(60)), ago(time.Minute)
			}), seeing(1, done),
			told{Desired: contract.DesiredRun, Deletes: []string{"rollout", "service"}, Expire: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := tc.run.DeepCopy()
			got := tell(makePlan(tc.run, tc.seen, now))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.run); diff != "" {
				t.Errorf("makePlan changed the run (-before +after):\n%s", diff)
			}
		})
	}
}
