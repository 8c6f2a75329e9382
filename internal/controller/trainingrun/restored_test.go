// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

const formerUIDOfTest = "1f3a9c2b-0000-4000-8000-000000000001"

// restoredRun is a run with the status of another run, as a backup restores it, without the attempts of that run.
func restoredRun(changes ...func(*v1alpha1.TrainingRun)) *v1alpha1.TrainingRun {
	return newRun(append([]func(*v1alpha1.TrainingRun){func(run *v1alpha1.TrainingRun) {
		run.UID = "2f3a9c2b-0000-4000-8000-000000000002"
		run.Status.RunUID, run.Status.Step, run.Status.Steps = formerUIDOfTest, new(int64(193)), new(int64(2000))
		const name = "r1f3a9c2b-s000193-c00004567-a002m1-0123456789-abcdef0123"
		checkpoint := v1alpha1.Checkpoint{Name: name, Step: 193, State: "tinker://model/weights/" + name}
		run.Status.LatestCheckpoint, run.Status.Checkpoints = checkpoint.Name, []v1alpha1.Checkpoint{checkpoint}
	}}, changes...)...)
}

func resumeFrom(uid string) func(*v1alpha1.TrainingRun) {
	return func(run *v1alpha1.TrainingRun) { run.Spec.ResumeFrom = &v1alpha1.ResumeFrom{UID: uid} }
}

func TestRestoredStatusWaitsForResumeFrom(t *testing.T) {
	unowned := func(run *v1alpha1.TrainingRun) { run.Status.RunUID = "" }
	digits := func(run *v1alpha1.TrainingRun) { run.Status.RunUID = "1f3a9c2b" }
	own := func(run *v1alpha1.TrainingRun) { run.Status.RunUID = string(run.UID) }
	cases := map[string]struct {
		changes []func(*v1alpha1.TrainingRun)
		start   int32
		owner   string
		words   string
	}{
		"the status of another run": {nil, 0, formerUIDOfTest, "the former run " + formerUIDOfTest +
			", which reached step 193"},
		"a status of an earlier build": {[]func(*v1alpha1.TrainingRun){unowned}, 0, "1f3a9c2b",
			"the former run 1f3a9c2b..."},
		"resumeFrom names yet another run": {[]func(
			*v1alpha1.TrainingRun){resumeFrom("3f3a9c2b-0000-4000-8000-000000000003")}, 0, formerUIDOfTest,
			"set spec.resumeFrom.uid"},
		"resumeFrom names the run": {[]func(*v1alpha1.TrainingRun){resumeFrom(formerUIDOfTest)}, 1,
			"2f3a9c2b-0000-4000-8000-000000000002", ""},
		"resumeFrom names the run of the digits": {[]func(*v1alpha1.TrainingRun){digits, resumeFrom(formerUIDOfTest)}, 1,
			"2f3a9c2b-0000-4000-8000-000000000002", ""},
		"the run's own status": {[]func(*v1alpha1.TrainingRun){own}, 1,
			"2f3a9c2b-0000-4000-8000-000000000002", ""},
		"a run that was created without a status": {[]func(
			*v1alpha1.TrainingRun){func(run *v1alpha1.TrainingRun) { run.Status = v1alpha1.TrainingRunStatus{} }}, 1,
			"2f3a9c2b-0000-4000-8000-000000000002", ""},
		"the status of another run that is suspended": {[]func(*v1alpha1.TrainingRun){suspend}, 0, formerUIDOfTest, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := restoredRun(tc.changes...)
			p := makePlan(run, observe.State{}, now)
			if p.start != tc.start {
				t.Fatalf("attempt %d starts, want %d", p.start, tc.start)
			}
			if got := ownerOfStatus(run, p); got != tc.owner {
				t.Errorf("the status belongs to %q, want %q", got, tc.owner)
			}
			if tc.words == "" {
				return
			}
			next := computeStatus(run, observe.State{}, p, now)
			for _, kind := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionReady} {
				if got := conditionOf(next, kind); got != "False SourceNotUsable" {
					t.Errorf("%s = %s, want False StatusRestored", kind, got)
				}
			}
			if got := conditionOf(next, v1alpha1.ConditionStalled); got != "True SourceNotUsable" {
				t.Errorf("Stalled = %s, want True StatusRestored", got)
			}
			if message := meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionReady).Message; !strings.Contains(message,
				tc.words) {
				t.Errorf("Ready says %q, want %q", message, tc.words)
			}
			if next.RunUID != tc.owner {
				t.Errorf("the next status belongs to %q, want %q", next.RunUID, tc.owner)
			}
		})
	}
}

// TestWithoutAttempts checks that the progress and the usage of the former run are kept: its checkpoints stay known,
// and its usage counts against the budget.
func TestWithoutAttempts(t *testing.T) {
	run := restoredRun(attempts(inProgress(7)), conditionIs(v1alpha1.ConditionSuspended, metav1.ConditionTrue, time.Hour))
	run.Status.Usage, run.Status.ActiveSeconds = &v1alpha1.Usage{SampledTokens: new(int64(5))}, new(int64(60))
	run.Status.SettingsFixed = new(true)
	want := restoredRun().Status
	want.Usage, want.ActiveSeconds = run.Status.Usage, run.Status.ActiveSeconds
	if diff := cmp.Diff(want, status.WithoutAttempts(run.Status)); diff != "" {
		t.Errorf("WithoutAttempts (-want +got):\n%s", diff)
	}
}

func TestEarlierRunIsTold(t *testing.T) {
	for name, tc := range map[string]struct {
		found *v1alpha1.EarlierRun
		want  string
	}{
		"none":           {nil, ""},
		"same settings":  {&v1alpha1.EarlierRun{UID: "u", Step: 7, SameSettings: new(true)}, "spec.resumeFrom.uid"},
		"other settings": {&v1alpha1.EarlierRun{UID: "u", Step: 7, SameSettings: new(false)}, "step 7 with other settings"},
	} {
		if got := earlierRun(tc.found); !strings.Contains(got, tc.want) || (got == "") != (tc.found == nil) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
