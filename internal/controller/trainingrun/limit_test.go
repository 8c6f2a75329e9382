// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// TestActiveSecondsLimit checks the limit with an attempt in progress for 100 s, after attempts that took 50 s.
func TestActiveSecondsLimit(t *testing.T) {
	cases := map[string]struct {
		limit int64
		want  contract.Desired
	}{
		"a limit that is not reached": {151, contract.DesiredRun},
		"a limit that is reached":     {150, contract.DesiredDrain},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			begun := inProgress(1)
			begun.StartTime = &metav1.Time{Time: now.Add(-100 * time.Second)}
			run := newRun(attempts(begun))
			run.Spec.Budget = &v1alpha1.Budget{ActiveSeconds: &tc.limit}
			run.Status.ActiveSeconds = new(int64(50))
			seen := observing(1, observe.Learner{Job: newJob("one"), Pod: newPod()})
			p := makePlan(run, seen, now)
			if p.desired != tc.want {
				t.Errorf("the learner is asked to %s, want %s", p.desired, tc.want)
			}
			if tc.want == contract.DesiredRun && p.requeue > time.Second {
				t.Errorf("the run is looked at again after %v, want 1 s", p.requeue)
			}
			got := computeStatus(run, seen, p, now)
			c := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionSuspended)
			if draining := c.Reason == v1alpha1.ReasonDraining; draining != (tc.want == contract.DesiredDrain) {
				t.Errorf("Suspended is %s, %s", c.Status, c.Reason)
			}
			if reached := desired.BudgetReached(run, run.Status, now); tc.want == contract.DesiredDrain &&
				!strings.HasPrefix(reached, "budget.activeSeconds (150) is reached: attempts were in progress for 150 s") {
				t.Errorf("the limit is %q", reached)
			}
		})
	}
}

// TestActiveSecondsCountEndedAttempts ends an attempt of 100 s, after which no other begins.
func TestActiveSecondsCountEndedAttempts(t *testing.T) {
	a := inProgress(1)
	a.StartTime = &metav1.Time{Time: now.Add(-100 * time.Second)}
	s := v1alpha1.TrainingRunStatus{ActiveSeconds: new(int64(50)), Attempts: []v1alpha1.Attempt{a}}
	if got := desired.ActiveTime(s, now); got != 150*time.Second {
		t.Errorf("attempts were in progress for %v, want 150 s", got)
	}
	a.CompletionTime = &metav1.Time{Time: now}
	s.ActiveSeconds, s.Attempts = new(int64(150)), []v1alpha1.Attempt{a}
	if got := desired.ActiveTime(s, now.Add(time.Hour)); got != 150*time.Second {
		t.Errorf("an hour later they were in progress for %v, want 150 s", got)
	}
}
