// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestDue(t *testing.T) {
	base := v1alpha1.TrainingRunStatus{Attempts: []v1alpha1.Attempt{{Number: 1}}}
	for _, kind := range []string{v1alpha1.ConditionLearnerRunning, v1alpha1.ConditionSuspended} {
		status.Set(&base.Conditions, 3, now.Add(-time.Minute), status.False(kind, "R", "m"))
	}
	base.ObservedGeneration, base.State = new(int64(3)), "Training"
	cases := map[string]struct {
		change func(*v1alpha1.TrainingRunStatus)
		wrote  time.Duration // ago
		due    bool
		wait   time.Duration
	}{
		"nothing new":                     {func(*v1alpha1.TrainingRunStatus) {}, time.Hour, false, 0},
		"time that passes is nothing new": {func(s *v1alpha1.TrainingRunStatus) { s.EffectiveTrainingRatio = new(0.5) }, time.Hour, false, 0},
		"a step soon after another":       {func(s *v1alpha1.TrainingRunStatus) { s.Step = new(int64(1)) }, time.Second, false, 4 * time.Second},
		"a step after a while":            {func(s *v1alpha1.TrainingRunStatus) { s.Step = new(int64(1)) }, 5 * time.Second, true, 0},
		"a state is waited for":           {func(s *v1alpha1.TrainingRunStatus) { s.State = "Evaluating" }, time.Second, false, time.Second},
		"a learner is waited for": {func(s *v1alpha1.TrainingRunStatus) {
			status.Set(&s.Conditions, 3, now, status.True(v1alpha1.ConditionLearnerRunning, "Running", "m"))
		}, 2 * time.Second, true, 0},
		"a suspension at once": {func(s *v1alpha1.TrainingRunStatus) {
			status.Set(&s.Conditions, 3, now, status.Unknown(v1alpha1.ConditionSuspended, "Draining", "m"))
		}, 0, true, 0},
		"a failure at once": {func(s *v1alpha1.TrainingRunStatus) {
			status.Set(&s.Conditions, 3, now, status.True(v1alpha1.ConditionFailed, "NoProgress", "m"))
		}, 0, true, 0},
		"an attempt's end at once": {func(s *v1alpha1.TrainingRunStatus) { s.Attempts[0].CompletionTime = new(metav1.NewTime(now)) }, 0, true, 0},
		"an attempt at once": {func(s *v1alpha1.TrainingRunStatus) {
			s.Attempts = append([]v1alpha1.Attempt{{Number: 2}}, s.Attempts...)
		}, 0, true, 0},
		"a generation at once": {func(s *v1alpha1.TrainingRunStatus) { s.ObservedGeneration = new(int64(4)) }, 0, true, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			after := base.DeepCopy()
			tc.change(after)
			due, wait := Due(&base, after, now.Add(-tc.wrote), now)
			if due != tc.due || wait != tc.wait {
				t.Errorf("Due = %v, %v, want %v, %v", due, wait, tc.due, tc.wait)
			}
		})
	}
}
