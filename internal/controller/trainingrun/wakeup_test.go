// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/controller/poller"
	"github.com/tinker-operator/tinker-operator/internal/controller/record"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// simulation reconciles a run by a clock that only requeues advance: the cluster sends no events.
type simulation struct {
	run *v1alpha1.TrainingRun
	// seenAt returns the state of the cluster at a time.
	seenAt func(at time.Time) observe.State
	// requeued is the number of reconciles of the run.
	requeued int
	wrote    time.Time
	last     plan
}

// until reconciles until the status or the plan is as wanted, and returns the time that this took. It fails if nothing
// would cause another reconcile, or if the time exceeds the limit.
func (s *simulation) until(t *testing.T, limit time.Duration, reached func(v1alpha1.TrainingRunStatus,
	plan) bool) time.Duration {
	t.Helper()
	for at := now; at.Sub(now) <= limit; {
		seen := s.seenAt(at)
		p := makePlan(s.run, seen, at)
		p.file = &contract.RunFile{}
		next := computeStatus(s.run, seen, p, at)
		due, wait := record.Due(&s.run.Status, &next, s.wrote, at, record.PaceFor(s.run, time.Time{}, at))
		if due {
			s.run.Status, s.wrote = next, at
		}
		s.requeued, s.last = s.requeued+1, p
		if reached(s.run.Status, p) {
			return at.Sub(now)
		}
		requeue := sooner(sooner(p.requeue, wait), seen.LookAgain)
		if requeue == 0 {
			t.Fatalf("after %v the run waits without a requeue: %+v", at.Sub(now), outcomeOf(p))
		}
		at = at.Add(requeue)
	}
	t.Fatalf("not reached within %v by %d reconciles: %+v", limit, s.requeued, outcomeOf(s.last))
	return 0
}

// has waits for a condition's status and reason.
func has(kind, want string) func(v1alpha1.TrainingRunStatus, plan) bool {
	return func(s v1alpha1.TrainingRunStatus, _ plan) bool {
		return meta.FindStatusCondition(s.Conditions, kind) != nil && conditionOf(s, kind) == want
	}
}

// TestRequeues checks that every decision that depends on the time alone is made in time, without reconciling the run
// needlessly often.
func TestRequeues(t *testing.T) {
	begun := func(changes ...func(*v1alpha1.TrainingRun)) *v1alpha1.TrainingRun {
		return newRun(append([]func(*v1alpha1.TrainingRun){attempts(v1alpha1.Attempt{Number: 1, StartTime: ago(0)})},
			changes...)...)
	}
	steady := func(seen observe.State) func(time.Time) observe.State {
		return func(time.Time) observe.State { return seen }
	}
	started := func(cause contract.Cause) func(v1alpha1.TrainingRunStatus, plan) bool {
		return func(_ v1alpha1.TrainingRunStatus, p plan) bool {
			return p.start == 2 && (p.ending == nil || p.ending.Cause == cause)
		}
	}
	// replies returns a state with a fresh reply, whose idle time grows.
	replies := func(reply contract.HeartbeatReply) func(time.Time) observe.State {
		return func(at time.Time) observe.State {
			current := reply
			current.SecondsSinceProgress += at.Sub(now).Seconds()
			seen := observing(1, runningFor(time.Hour), replying(current))
			seen.Heartbeat.At = at
			return seen
		}
	}
	training := contract.HeartbeatReply{Attempt: 1, Progress: contract.Progress{Phase: contract.PhaseTraining, Step: 5,
		Lineage: "a", WorkersSeen: 2}}
	blockedVolume := blocked
	blockedVolume.SecondsSinceProgress = 0
	cases := map[string]struct {
		run      *v1alpha1.TrainingRun
		seenAt   func(time.Time) observe.State
		reached  func(v1alpha1.TrainingRunStatus, plan) bool
		from, to time.Duration
		most     int // reconciles
	}{
		"a learner that falls silent": {
			begun(conditionIs(v1alpha1.ConditionPodsReady, "True", time.Hour)),
			steady(observing(1, runningFor(time.Hour), replying(training),
				func(o *observe.State) { o.Heartbeat.Err = errors.New("timeout") })),
			has(v1alpha1.ConditionPodsReady, "Unknown Unreachable"), 10 * time.Second, 30 * time.Second, 5,
		},
		"a learner that does not reply to a new manager": {
			begun(conditionIs(v1alpha1.ConditionPodsReady, "True", time.Hour)),
			steady(observing(1, runningFor(time.Hour),
				func(o *observe.State) { o.Heartbeat = poller.Result{Since: now, Err: errors.New("timeout")} })),
			has(v1alpha1.ConditionPodsReady, "Unknown Unreachable"), 10 * time.Second, 30 * time.Second, 5,
		},
		"a pod that cannot be scheduled": {
			begun(), steady(observing(1, observe.Learner{Job: newJob("one"), Pod: newPod(pending, unschedulableFor(0))})),
			has(v1alpha1.ConditionStalled, "True Unschedulable"), 2 * time.Minute, 125 * time.Second, 6,
		},
		"a pod that does not start": {
			begun(), steady(observing(1, observe.Learner{Job: newJob("one"), Pod: newPod(pending)})),
			started(contract.CauseStartTimeout), 15 * time.Minute, 15*time.Minute + 5*time.Second, 10,
		},
		"a pod that is refused": {
			begun(), steady(observing(1, observe.Learner{Job: newJob("one"), Pod: nil}, func(o *observe.State) {
				o.LearnerObstacle = problem.Problem{Code: problem.CreateRefused, Evidence: "m"}
				o.LookAgain = observe.LookInterval
			})),
			has(v1alpha1.ConditionStalled, "True CreateRefused"), 2 * time.Minute, 131 * time.Second, 20,
		},
		"a learner without progress": {
			begun(), replies(training), started(contract.CauseStalled), time.Hour, time.Hour + 5*time.Second, 20,
		},
		"a volume that is not writable": {
			begun(), replies(blockedVolume), has(v1alpha1.ConditionStalled, "True ArtifactsBlocked"), 2 * time.Minute,
			130 * time.Second, 6,
		},
		"a back-off": {
			newRun(attempts(endedAttempt(1, contract.CauseNodeLost, 5, 5, 0), endedAttempt(0, contract.CauseNodeLost, 5, 5,
				time.Minute))),
			steady(observing(0, observe.Learner{})), started(""), 10 * time.Second, 15 * time.Second, 6,
		},
		"a refused key": {
			newRun(attempts(func() v1alpha1.Attempt {
				a := endedAttempt(1, contract.CauseUpstream, 5, 5, 0)
				a.Reason = string(problem.KeyRefused)
				return a
			}())), steady(observing(0, observe.Learner{})), started(""), 45 * time.Second, 50 * time.Second, 6,
		},
		"a drain without an answer": {
			begun(suspend), steady(observing(1, runningFor(time.Hour), silent)),
			func(_ v1alpha1.TrainingRunStatus, p plan) bool { return len(p.deletes) > 0 }, 30 * time.Second, 65 * time.Second, 5,
		},
		"a drain that takes too long": {
			begun(suspend), replies(training),
			func(_ v1alpha1.TrainingRunStatus, p plan) bool {
				return len(p.deletes) > 0
			}, 10 * time.Minute, 11 * time.Minute, 25,
		},
		"the time to live of a finished run": {
			newRun(attempts(endedAttempt(1, contract.CauseCompleted, 0, 60, 0)), conditionIs(v1alpha1.ConditionComplete, "True",
				0), func(r *v1alpha1.TrainingRun) {
				r.Spec.TTLSecondsAfterFinished, r.Status.CompletionTime = new(int32(3600)), ago(0)
			}), steady(observing(0, observe.Learner{}, func(o *observe.State) { o.Rollout, o.Service = nil, nil })),
			func(_ v1alpha1.TrainingRunStatus, p plan) bool { return p.expire }, time.Hour, time.Hour + time.Second, 4,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := simulation{run: tc.run, seenAt: tc.seenAt}
			took := s.until(t, tc.to+time.Hour, tc.reached)
			if took < tc.from || took > tc.to {
				t.Errorf("decided after %v, want %v to %v", took, tc.from, tc.to)
			}
			if s.requeued > tc.most {
				t.Errorf("%d reconciles in %v, want at most %d", s.requeued, took, tc.most)
			}
		})
	}
}
