// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

func TestWriteDue(t *testing.T) {
	base := newRun(attempts(inProgress(1)), conditionIs(v1alpha1.ConditionLearnerRunning, "False", time.Minute), conditionIs(v1alpha1.ConditionSuspended, "False", time.Minute)).Status
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
		"an attempt's end at once": {func(s *v1alpha1.TrainingRunStatus) { s.Attempts[0].CompletionTime = ago(0) }, 0, true, 0},
		"an attempt at once": {func(s *v1alpha1.TrainingRunStatus) {
			s.Attempts = append([]v1alpha1.Attempt{inProgress(2)}, s.Attempts...)
		}, 0, true, 0},
		"a generation at once": {func(s *v1alpha1.TrainingRunStatus) { s.ObservedGeneration = new(int64(4)) }, 0, true, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			after := base.DeepCopy()
			tc.change(after)
			due, wait := writeDue(&base, after, now.Add(-tc.wrote), now)
			if due != tc.due || wait != tc.wait {
				t.Errorf("writeDue = %v, %v, want %v, %v", due, wait, tc.due, tc.wait)
			}
		})
	}
}

func TestMemory(t *testing.T) {
	m := newMemory()
	before, after := newRun(), newRun()
	before.ResourceVersion, after.ResourceVersion = "1", "2"
	m.written(before, after, now)
	if !m.stale(before) || m.stale(after) || !m.wrote(after).Equal(now) {
		t.Error("memory does not know its own write")
	}
	m.refuse(after, 2, "quota")
	if m.refusal(after, 2) != "quota" || m.refusal(after, 3) != "" {
		t.Error("memory mixes attempts up")
	}
	another := newRun()
	another.UID, another.ResourceVersion = "another", "1"
	if m.stale(another) || m.refusal(another, 2) != "" {
		t.Error("memory takes a run for an earlier one of its name")
	}
	m.forget(keyOf(after))
	if m.stale(before) {
		t.Error("memory forgets nothing")
	}
}

func TestNewEvents(t *testing.T) {
	started := newRun(attempts(inProgress(1))).Status
	crashed := newRun(attempts(inProgress(2), endedAttempt(1, contract.CauseCrashed, 0, 1, 0))).Status
	at := func(step int64) v1alpha1.TrainingRunStatus {
		next := started
		next.LatestCheckpoint = &v1alpha1.Checkpoint{Step: step, State: "tinker://m/weights/s"}
		return next
	}
	with := func(base v1alpha1.TrainingRunStatus, conditions ...status.Condition) v1alpha1.TrainingRunStatus {
		next := *base.DeepCopy()
		for _, c := range conditions {
			status.Set(&next.Conditions, 1, now, c)
		}
		return next
	}
	cases := map[string]struct {
		before, after v1alpha1.TrainingRunStatus
		want          []string
	}{
		"nothing":                   {started, started, nil},
		"a first attempt":           {v1alpha1.TrainingRunStatus{}, started, []string{"Normal AttemptStarted"}},
		"a crash and the next":      {started, crashed, []string{"Normal AttemptStarted", "Warning AttemptEnded"}},
		"a lasting checkpoint":      {at(19), at(20), []string{"Normal CheckpointSaved"}},
		"one that was passed":       {at(19), at(23), []string{"Normal CheckpointSaved"}},
		"a first that lasts":        {started, at(20), []string{"Normal CheckpointSaved"}},
		"a rolling state":           {at(20), at(21), nil},
		"an opening state":          {started, at(0), nil},
		"an older state after loss": {at(41), at(39), nil},
		"a drain":                   {started, with(started, status.Unknown("Suspended", "Draining", "m")), []string{"Normal Draining"}},
		"a suspension":              {with(started, status.Unknown("Suspended", "Draining", "m")), with(started, status.True("Suspended", "Suspended", "m")), []string{"Normal Suspended"}},
		"a resumption":              {with(started, status.True("Suspended", "Suspended", "m")), with(started, status.False("Suspended", "NotSuspended", "m")), []string{"Normal Resumed"}},
		"a run's first status":      {v1alpha1.TrainingRunStatus{}, with(v1alpha1.TrainingRunStatus{}, status.False("Suspended", "NotSuspended", "m")), nil},
		"completion":                {started, with(started, status.True("Complete", "Completed", "m")), []string{"Normal Completed"}},
		"a failure has one event":   {started, with(started, status.True("Failed", "KeyRefused", "m"), status.True("Stalled", "KeyRefused", "m")), []string{"Warning KeyRefused"}},
		"intervention is required":  {started, with(started, status.True("Stalled", "SecretNotFound", "m")), []string{"Warning SecretNotFound"}},
		"an error upstream":         {started, with(started, status.False("Progressing", "Throttled", "m")), []string{"Warning Throttled"}},
		"an optimizer that is lost": {with(started, status.True("Resumable", "CheckpointSaved", "m")), with(started, status.True("Resumable", "OptimizerNotRestored", "m")), []string{"Warning OptimizerNotRestored"}},
		"waiting for a learner":     {started, with(started, status.False("Progressing", "WaitingForLearner", "m")), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, event := range newEvents(20, &tc.before, &tc.after) {
				got = append(got, event.Type+" "+event.Reason)
				if event.Note == "" || event.Action == "" {
					t.Errorf("the event %s lacks a note or an action", event.Reason)
				}
			}
			less := func(a, b string) bool { return a < b }
			if diff := cmp.Diff(tc.want, got, sorted(less)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}
