// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// TestSuspensionNamesASilentNode suspends a run, one of whose pods is on a node that does not answer.
func TestSuspensionNamesASilentNode(t *testing.T) {
	for name, tc := range map[string]struct {
		since     time.Duration
		lingering string
		stalled   metav1.ConditionStatus
	}{
		"a node that answers":       {time.Hour, "", metav1.ConditionFalse},
		"a node silent for a while": {time.Minute, `pod "worker" on node "n1"`, metav1.ConditionFalse},
		"a node silent for long":    {time.Hour, `pod "worker" on node "n1"`, metav1.ConditionTrue},
	} {
		t.Run(name, func(t *testing.T) {
			run := newRun(suspend, attempts(endedAttempt(1, contract.CauseDrained, 0, 5, tc.since)),
				conditionIs(v1alpha1.ConditionSuspended, metav1.ConditionUnknown, tc.since))
			seen := observing(1, observe.Learner{}, func(s *observe.State) {
				s.Lingering, s.Rollout = tc.lingering, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "rollout",
					DeletionTimestamp: ago(tc.since)}}
			})
			next := computeStatus(run, seen, planned(run, seen), now)
			c := meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionSuspended)
			if c.Status != metav1.ConditionUnknown || strings.Contains(c.Message,
				`The node of pod "worker" on node "n1"`) != (tc.lingering != "") {
				t.Errorf("Suspended is %s: %s", c.Status, c.Message)
			}
			if got := meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionStalled); got.Status != tc.stalled {
				t.Errorf("Stalled is %s (%s), want %s", got.Status, got.Message, tc.stalled)
			}
		})
	}
}

// TestBlockedRunMakesNoWorkers resumes a run whose next attempt cannot begin: without a Job, nothing shows which data
// and servers the workers need, so no workers are made.
func TestBlockedRunMakesNoWorkers(t *testing.T) {
	invalid := &problem.Problem{Code: problem.RunFileInvalid}
	for name, tc := range map[string]struct {
		rollout *batchv1.Job
		want    bool
	}{
		"no Job":           {nil, false},
		"the workers' Job": {newJob("rollout"), true},
	} {
		t.Run(name, func(t *testing.T) {
			run := newRun(attempts(endedAttempt(1, contract.CauseDrained, 0, 5, time.Hour)))
			seen := observing(1, observe.Learner{}, func(s *observe.State) { s.Rollout = tc.rollout })
			p := makePlan(run, seen, now)
			if p.start != 2 {
				t.Fatalf("attempt %d is to start, want 2", p.start)
			}
			if p = p.withBlock(invalid, 0); p.workers != tc.want {
				t.Errorf("workers = %v, want %v", p.workers, tc.want)
			}
		})
	}
}

// TestQueuedRunIsLeftAlone checks that a run is rarely reconciled while a queue or a quota keeps its learner from
// starting, however long that lasts: an event or a look ends the wait.
func TestQueuedRunIsLeftAlone(t *testing.T) {
	old := inProgress(1)
	old.StartTime = ago(2 * time.Hour)
	job := newJob("learner")
	job.CreationTimestamp = *ago(2 * time.Hour)
	queued := job.DeepCopy()
	queued.Spec.Suspend = new(true)
	refused := func(s *observe.State) {
		s.LearnerObstacle = problem.Problem{Code: problem.CreateRefused, Evidence: "quota"}
	}
	for name, seen := range map[string]observe.State{
		"suspended by a queue": observing(1, observe.Learner{Job: queued}),
		"refused by a quota":   observing(1, observe.Learner{Job: job}, refused),
	} {
		if p := makePlan(newRun(attempts(old)), seen, now); p.ending != nil || p.requeue != maxRequeue {
			t.Errorf("%s: ending %+v, reconciled again after %s, want none, %s", name, p.ending, p.requeue, maxRequeue)
		}
	}
}
