// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"errors"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/heartbeat"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/controller/poller"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// cluster returns the state of a cluster with an attempt that was made at a time.
type cluster func(attempt int32, made time.Time) observe.State

// sixHours reconciles a run for six hours while the cluster stays as it is. It returns the last status, and the time
// after which the run was first stalled; 0 if it never was.
func sixHours(t *testing.T, see cluster) (v1alpha1.TrainingRunStatus, time.Duration) {
	t.Helper()
	begin := now
	defer func() { now = begin }()
	run, made, stalled := newRun(), now, time.Duration(0)
	for range 6 * 60 {
		seen := observing(0, observe.Learner{})
		if n := status.NewestAttempt(run); n > 0 {
			seen = see(n, made)
		}
		p := planned(run, seen)
		next := computeStatus(run, seen, p, now)
		if p.start > 0 {
			made = now
		}
		run.Status = next
		if stalled == 0 && meta.IsStatusConditionTrue(next.Conditions, v1alpha1.ConditionStalled) {
			stalled = now.Sub(begin)
		}
		now = now.Add(time.Minute)
	}
	return run.Status, stalled
}

// learnerSince is a learner whose container has run since a time.
func learnerSince(made time.Time) observe.Learner {
	pod := newPod()
	pod.CreationTimestamp = metav1.NewTime(made)
	pod.Status.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(made)
	return observe.Learner{Job: newJob("learner"), Pod: pod}
}

// creatingSince returns a learner with a container that has waited since a time. Its pod gives no reason.
func creatingSince(made time.Time) observe.Learner {
	pod := newPod(waitingFor("ContainerCreating", ""))
	pod.CreationTimestamp = metav1.NewTime(made)
	return observe.Learner{Job: newJob("learner"), Pod: pod}
}

// waiting is the reply of a learner that waits for workers.
func waiting(attempt int32, made time.Time) contract.HeartbeatReply {
	return contract.HeartbeatReply{
		Attempt: attempt, SecondsSinceProgress: now.Sub(made).Seconds(),
		Progress: contract.Progress{Phase: contract.PhaseTraining, Steps: 60, Lineage: "abc"},
	}
}

// noWorkers sets the workers' Job without a ready worker.
func noWorkers(changes ...func(*observe.State)) func(*observe.State) {
	return func(s *observe.State) {
		s.Rollout.Status = batchv1.JobStatus{Active: 2, Ready: new(int32(0))}
		for _, change := range changes {
			change(s)
		}
	}
}

func TestWaitsForAPersonBecomeStalled(t *testing.T) {
	reporting := func(code problem.Code) cluster {
		return func(attempt int32, made time.Time) observe.State {
			reply := waiting(attempt, made)
			reply.Problems, reply.Progress.WorkersSeen = []problem.Problem{{Code: code}}, 2
			return observing(attempt, learnerSince(made), replying(reply))
		}
	}
	for name, tc := range map[string]struct {
		see cluster
		// within is the time within which the run must be stalled; 0 means never.
		within   time.Duration
		reason   string
		says     string
		attempts int32
	}{
		"a volume of the learner is missing": {func(attempt int32, made time.Time) observe.State {
			return observing(attempt, creatingSince(made), func(s *observe.State) {
				s.LearnerObstacle = problem.Problem{Code: problem.VolumeNotMounted, Evidence: `configmap "ca" not found`}
			})
		}, 4 * time.Minute, v1alpha1.ReasonObjectNotFound, `configmap "ca" not found`, 25},
		"a pod does not start, and nothing says why": {func(attempt int32, made time.Time) observe.State {
			return observing(attempt, creatingSince(made))
		}, 40 * time.Minute, v1alpha1.ReasonPodInvalid, "Correct podOverrides[target=Learner], or repair the cluster", 25},
		"workers are never ready": {func(attempt int32, made time.Time) observe.State {
			return observing(attempt, learnerSince(made), replying(waiting(attempt, made)), noWorkers())
		}, 20 * time.Minute, v1alpha1.ReasonWorkersMissing, "look at the pods", 1},
		"workers do not reach the learner": {func(attempt int32, made time.Time) observe.State {
			return observing(attempt, learnerSince(made), replying(waiting(attempt, made)), noWorkers(func(s *observe.State) {
				s.WorkersObstacle = problem.Problem{Code: problem.WorkersUnanswered}
			}))
		}, 8 * time.Minute, v1alpha1.ReasonWorkersMissing, "Let NetworkPolicies admit", 1},
		"a queue keeps the workers": {func(attempt int32, made time.Time) observe.State {
			return observing(attempt, learnerSince(made), replying(waiting(attempt, made)),
				noWorkers(func(s *observe.State) { s.Rollout.Spec.Suspend = new(true) }))
		}, 0, v1alpha1.ReasonAsExpected, "", 1},
		"a learner never answers": {func(attempt int32, made time.Time) observe.State {
			return observing(attempt, learnerSince(made), func(s *observe.State) {
				s.Heartbeat = poller.Result{Since: made, Err: errors.New("dial tcp 10.0.0.1:7444: i/o timeout")}
			})
		}, 5 * time.Minute, v1alpha1.ReasonUnreachable, "let NetworkPolicies admit the operator", 1},
		"a learner's reply is too long": {func(attempt int32, made time.Time) observe.State {
			return observing(attempt, learnerSince(made), func(s *observe.State) {
				s.Heartbeat = poller.Result{Since: made, Err: &heartbeat.ReplyError{Problem: "it is longer than the 512 KiB that " +
					"the manager reads"}}
			})
		}, 5 * time.Minute, v1alpha1.ReasonUnreachable, "longer than the 512 KiB", 1},
		"too_large": {reporting(problem.RequestTooLarge), 5 * time.Minute, v1alpha1.ReasonUnsupportedByEndpoint,
			"Raise the limit", 1},
		"refused": {reporting(problem.SamplingRefused), 5 * time.Minute, v1alpha1.ReasonEndpointFailing,
			"Correct the cause that the answer names",
			1},
		"unreachable": {reporting(problem.EndpointUnreachable), 5 * time.Minute, v1alpha1.ReasonEndpointUnreachable,
			"Check tinker.baseURL",
			1},
		// These pass by themselves.
		"throttled":         {reporting(problem.Throttled), 0, v1alpha1.ReasonAsExpected, "", 1},
		"paused_capacity":   {reporting(problem.PausedCapacity), 0, v1alpha1.ReasonAsExpected, "", 1},
		"paused_rate_limit": {reporting(problem.PausedRateLimit), 0, v1alpha1.ReasonAsExpected, "", 1},
		"server_error":      {reporting(problem.EndpointFailing), 0, v1alpha1.ReasonAsExpected, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			got, after := sixHours(t, tc.see)
			if (after == 0) != (tc.within == 0) || after > tc.within {
				t.Errorf("the run is stalled after %s, want within %s", after, tc.within)
			}
			c := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionStalled)
			if c.Reason != tc.reason || !strings.Contains(c.Message, tc.says) {
				t.Errorf("Stalled has reason %q, message %q, want %q, %q", c.Reason, c.Message, tc.reason, tc.says)
			}
			if n := got.Attempts[0].Number; n > tc.attempts {
				t.Errorf("%d attempts were made in six hours, want at most %d", n, tc.attempts)
			}
		})
	}
}
