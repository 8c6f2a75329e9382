// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

func TestNew(t *testing.T) {
	started := v1alpha1.TrainingRunStatus{Attempts: []v1alpha1.Attempt{{Number: 1}}}
	crashed := v1alpha1.TrainingRunStatus{Attempts: []v1alpha1.Attempt{
		{Number: 2}, {Number: 1, Cause: string(contract.CauseCrashed), CompletionTime: new(metav1.Now())},
	}}
	at := func(step int64) v1alpha1.TrainingRunStatus {
		next := started
		next.LatestCheckpoint = "s"
		next.Checkpoints = []v1alpha1.Checkpoint{{Name: "s", Step: step, State: "tinker://m/weights/s"}}
		return next
	}
	cold := func(next v1alpha1.TrainingRunStatus) v1alpha1.TrainingRunStatus {
		next.Attempts = []v1alpha1.Attempt{{Number: 1, ColdOptimizer: new(true)}}
		return next
	}
	answering := v1alpha1.TrainingRunStatus{Attempts: []v1alpha1.Attempt{{Number: 1, AnswerTime: new(metav1.Now())}}}
	with := func(base v1alpha1.TrainingRunStatus, conditions ...status.Condition) v1alpha1.TrainingRunStatus {
		next := *base.DeepCopy()
		for _, c := range conditions {
			status.Set(&next.Conditions, &next.Codes, 1, time.Now(), c)
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
		"a drain": {started, with(started, status.Unknown("Suspended", "Draining", "m")),
			[]string{"Normal Draining"}},
		"a suspension": {with(started, status.Unknown("Suspended", "Draining", "m")),
			with(started, status.True("Suspended", "Suspended", "m")), []string{"Normal Suspended"}},
		"a resumption": {with(started, status.True("Suspended", "Suspended", "m")),
			with(started, status.False("Suspended", "AsExpected", "m")), []string{"Normal Resumed"}},
		"a run's first status": {v1alpha1.TrainingRunStatus{},
			with(v1alpha1.TrainingRunStatus{}, status.False("Suspended", "AsExpected", "m")), nil},
		"completion": {started, with(started, status.True("Complete", "Completed", "m")),
			[]string{"Normal Completed"}},
		"a failure has one event": {started, with(started, status.True("Failed", "KeyRefused", "m"),
			status.True("Stalled", "KeyRefused", "m")), []string{"Warning KeyRefused"}},
		"intervention is required": {started, with(started, status.True("Stalled", "SecretNotFound", "m")),
			[]string{"Warning SecretNotFound"}},
		"an error upstream": {started, with(started, status.False("Progressing", "Throttled", "m")),
			[]string{"Warning Throttled"}},
		"another error upstream": {
			with(started, status.False("Progressing", "EndpointFailing", "500")),
			with(started, status.False("Progressing", "EndpointFailing", "502")),
			[]string{"Warning EndpointFailing"},
		},
		"the same error upstream": {
			with(started, status.False("Progressing", "EndpointFailing", "500")),
			with(started, status.False("Progressing", "EndpointFailing", "500")), nil,
		},
		"another reason to wait": {
			with(started, status.False("Progressing", "WaitingForLearner", "1")),
			with(started, status.False("Progressing", "WaitingForLearner", "2")), nil,
		},
		"an optimizer that is lost":    {at(5), cold(at(5)), []string{"Warning OptimizerNotRestored"}},
		"an optimizer that stays lost": {cold(at(5)), cold(at(5)), nil},
		"refused workers": {answering, with(answering, status.False("PodsReady", "CreateRefused", "m")),
			[]string{"Warning CreateRefused"}},
		"a refused learner": {started, with(started, status.False("PodsReady", "CreateRefused", "m")), nil},
		"workers that crash": {with(started, status.True("PodsReady", "Running", "m")),
			with(started, status.False("PodsReady", "WorkersCrashed", "m")), []string{"Warning WorkersCrashed"}},
		"workers that crash after some were missing": {
			with(started, status.Show("PodsReady", "False", problem.Problem{Code: problem.WorkersMissing})),
			with(started, status.Show("PodsReady", "False", problem.Problem{Code: problem.WorkersCrashed})),
			[]string{"Warning WorkersMissing"}},
		"another that crashes": {with(started, status.False("PodsReady", "WorkersCrashed", "1")),
			with(started, status.False("PodsReady", "WorkersCrashed", "2")), nil},
		"waiting for a learner": {started, with(started, status.False("Progressing", "WaitingForLearner", "m")), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, event := range EventsOfRun(20, &tc.before, &tc.after) {
				got = append(got, event.Type+" "+event.Reason)
				if event.Note == "" || event.Action == "" {
					t.Errorf("the event %s lacks a note or an action", event.Reason)
				}
			}
			less := func(a, b string) bool { return a < b }
			if diff := cmp.Diff(tc.want, got, cmpopts.SortSlices(less)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDiagnosisEvents(t *testing.T) {
	diagnosed := func(causes ...string) *v1alpha1.TrainingRunStatus {
		s := &v1alpha1.TrainingRunStatus{}
		for _, cause := range causes {
			s.Diagnoses = append(s.Diagnoses, v1alpha1.Diagnosis{Cause: cause, Message: "Figures of " + cause + "."})
		}
		return s
	}
	for name, tc := range map[string]struct {
		before, after *v1alpha1.TrainingRunStatus
		want          []Event
	}{
		"none":             {diagnosed(), diagnosed(), nil},
		"a cause":          {diagnosed(), diagnosed("A"), []Event{Warning("A", "Learn", "Figures of A.")}},
		"the same":         {diagnosed("A"), diagnosed("A"), nil},
		"another":          {diagnosed("A"), diagnosed("B", "A"), []Event{Warning("B", "Learn", "Figures of B.")}},
		"one that is over": {diagnosed("A"), diagnosed(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, EventsOfRun(1, tc.before, tc.after)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOutdatedEvents checks that there is one event when a RewardEnvironment changes, and another one when a further
// RewardEnvironment changes.
func TestOutdatedEvents(t *testing.T) {
	of := func(outdated ...*bool) *v1alpha1.TrainingRunStatus {
		s := &v1alpha1.TrainingRunStatus{}
		for i, o := range outdated {
			s.Environments = append(s.Environments, v1alpha1.EnvironmentStatus{Name: string(rune('a' + i)), Outdated: o})
		}
		return s
	}
	for name, tc := range map[string]struct {
		before, after *v1alpha1.TrainingRunStatus
		want          int
	}{
		"one changes":     {of(nil, nil), of(new(true), nil), 1},
		"it stays so":     {of(new(true), nil), of(new(true), nil), 0},
		"another changes": {of(new(true), nil), of(new(true), new(true)), 1},
		"it is restored":  {of(new(true)), of(nil), 0},
	} {
		found := EventsOfRun(1, tc.before, tc.after)
		if len(found) != tc.want || tc.want > 0 && (found[0].Reason != "EnvironmentOutdated" || found[0].Note == "") {
			t.Errorf("%s: events %+v, want %d", name, found, tc.want)
		}
	}
}
