// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// learnerOf returns the learner's Job of an attempt, made from the present spec. Tests call it before they change the
// spec.
func learnerOf(run *v1alpha1.TrainingRun, attempt int32) *batchv1.Job {
	return desired.LearnerJob(run, attempt, "", desired.Settings{})
}

func fasterLearning(run *v1alpha1.TrainingRun) { run.Spec.Algorithm.Optimizer.LearningRate = 2 }

// notFixed marks the settings of a started run as not fixed yet.
func notFixed(run *v1alpha1.TrainingRun) { run.Status.SettingsFixed = new(false) }

// TestChangedSettingsRestartLearner stops a learner if its settings are changed before its first step, and starts the
// next one at once; a learner with fixed settings is left alone.
func TestChangedSettingsRestartLearner(t *testing.T) {
	cases := map[string]struct {
		change   func(*v1alpha1.TrainingRun)
		restarts bool
	}{
		"before the first step": {fasterLearning, true},
		"of a field that may change": {func(run *v1alpha1.TrainingRun) { run.Spec.Checkpoints.EverySteps = new(int64(3)) },
			false},
		"once the settings are so": {func(run *v1alpha1.TrainingRun) {
			fasterLearning(run)
			run.Status.SettingsFixed = new(true)
		}, false},
		"of a run of a former build": {func(run *v1alpha1.TrainingRun) {
			fasterLearning(run)
			run.Status.SettingsFixed = nil
		}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := newRun(attempts(inProgress(1)), notFixed)
			job := learnerOf(run, 1)
			tc.change(run)
			reply := contract.HeartbeatReply{Attempt: 1, Progress: contract.Progress{Phase: contract.PhaseTraining}}
			p := makePlan(run, observing(1, observe.Learner{Job: job, Pod: newPod()}, replying(reply)), now)
			if p.settingsChanged != tc.restarts || len(p.deletes) > 0 != tc.restarts {
				t.Errorf("the learner is restarted: %v, and %d objects are deleted; want %v", p.settingsChanged, len(p.deletes),
					tc.restarts)
			}
		})
	}

	run := newRun(attempts(inProgress(1)), notFixed)
	job := learnerOf(run, 1)
	fasterLearning(run)
	verdict := verdictText(t, contract.Verdict{Cause: contract.CauseDrained, Attempt: 1})
	p := makePlan(run, observing(1, observe.Learner{Job: job,
		Pod: newPod(exited(int32(contract.CauseDrained.ExitCode()), "Error", verdict))}), now)
	if p.ending == nil || p.ending.Reason != problem.SettingsChanged || p.start != 2 {
		t.Fatalf("the ending is %+v, and attempt %d starts; want SettingsChanged and attempt 2", p.ending, p.start)
	}
	p.file = &contract.RunFile{Attempt: 2, Fixed: contract.Fixed{Algorithm: &algorithm.Algorithm{Steps: 60}}}
	if next := computeStatus(run, observing(1, observe.Learner{}), p, now); *next.Restarts != 0 {
		t.Errorf("%d restarts are counted, want none for a change of the spec", *next.Restarts)
	}
}

// TestSettingsAreFixedByFirstStep fixes the settings with the first step that was committed under the settings of the
// spec.
func TestSettingsAreFixedByFirstStep(t *testing.T) {
	cases := map[string]struct {
		step   int64
		change func(*v1alpha1.TrainingRun)
		want   bool
	}{
		"no step":                  {0, func(*v1alpha1.TrainingRun) {}, false},
		"a step":                   {1, func(*v1alpha1.TrainingRun) {}, true},
		"a step of another spec":   {1, fasterLearning, false},
		"a run of a former build":  {0, func(run *v1alpha1.TrainingRun) { run.Status.SettingsFixed = nil }, false},
		"its first step":           {1, func(run *v1alpha1.TrainingRun) { run.Status.SettingsFixed = nil }, true},
		"a run that was so before": {0, func(run *v1alpha1.TrainingRun) { run.Status.SettingsFixed = new(true) }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := newRun(attempts(inProgress(1)), notFixed)
			job := learnerOf(run, 1)
			tc.change(run)
			reply := contract.HeartbeatReply{Attempt: 1, RunUID: string(run.UID),
				Progress: contract.Progress{Phase: contract.PhaseTraining, Step: tc.step, Lineage: "ab"}}
			seen := observing(1, observe.Learner{Job: job, Pod: newPod()}, replying(reply))
			next := computeStatus(run, seen, makePlan(run, seen, now), now)
			if got := ptr.Deref(next.SettingsFixed, false); got != tc.want {
				t.Errorf("settingsFixed is %v, want %v", got, tc.want)
			}
		})
	}
}

// TestSettingsOfLearnerOfFormerBuildAreFixed checks that the first step of a learner of a former build fixes the
// settings, because its Job does not say which settings it has. Even before that step, nothing permits a change of the
// settings. The learner of the next attempt permits one.
func TestSettingsOfLearnerOfFormerBuildAreFixed(t *testing.T) {
	run := newRun(attempts(inProgress(1)))
	job := learnerOf(run, 1)
	delete(job.Annotations, v1alpha1.AnnotationSettings)
	write := func(run *v1alpha1.TrainingRun, job *batchv1.Job, step int64) *bool {
		reply := contract.HeartbeatReply{Attempt: status.NewestAttempt(run), RunUID: string(run.UID),
			Progress: contract.Progress{Phase: contract.PhaseTraining, Step: step, Lineage: "ab"}}
		seen := observing(status.NewestAttempt(run), observe.Learner{Job: job, Pod: newPod()}, replying(reply))
		run.Status = computeStatus(run, seen, makePlan(run, seen, now), now)
		return run.Status.SettingsFixed
	}
	next := run.DeepCopy()
	if got := write(run, job, 0); got != nil {
		t.Errorf("settingsFixed is %v before the first step, want none", *got)
	}
	if got := write(run, job, 1); !ptr.Deref(got, false) {
		t.Error("settingsFixed is not true after the first step")
	}
	next.Status.Attempts = append([]v1alpha1.Attempt{inProgress(2)}, endedAttempt(1, contract.CauseNodeLost, 0, 0,
		time.Hour))
	if got := write(next, learnerOf(next, 2), 0); got == nil || *got {
		t.Error("settingsFixed is not false before the first step of a learner of this build")
	}
}

// TestCommittedStepWithOtherSettingsWaits checks that a run whose learner found a step that was committed with other
// settings waits until the spec changes: it makes no further attempt, and does not fail.
func TestCommittedStepWithOtherSettingsWaits(t *testing.T) {
	const words = "Attempt 1 committed step 3 before a change of spec.algorithm took effect"
	run := newRun(attempts(inProgress(2), endedAttempt(1, contract.CauseNodeLost, 0, 0, time.Hour)), notFixed)
	verdict := verdictText(t, contract.Verdict{Cause: contract.CauseConfigRejected, Reason: problem.SettingsDiffer,
		Message: words, Attempt: 2})
	code := int32(contract.CauseConfigRejected.ExitCode())
	seen := observing(2, observe.Learner{Job: learnerOf(run, 2), Pod: newPod(exited(code, "Error", verdict))})
	for range 2 { // as the learner ends, and ever after
		p := makePlan(run, seen, now)
		run.Status = computeStatus(run, seen, p, now)
		if p.start != 0 || p.final != nil {
			t.Fatalf("attempt %d starts, or the run ends: %+v", p.start, p.final)
		}
		for kind, want := range map[string]string{
			v1alpha1.ConditionAccepted: "False SpecInvalid", v1alpha1.ConditionStalled: "True SpecInvalid",
			v1alpha1.ConditionReady: "False SpecInvalid",
		} {
			if got := conditionOf(run.Status, kind); got != want {
				t.Errorf("%s = %s, want %s", kind, got, want)
			}
		}
		if message := meta.FindStatusCondition(run.Status.Conditions,
			v1alpha1.ConditionReady).Message; !strings.Contains(message, words) {
			t.Errorf("Ready says %q, want %q", message, words)
		}
	}
	run.Generation++
	if p := makePlan(run, seen, now); p.start != 3 {
		t.Errorf("attempt %d starts after a change of the spec, want 3", p.start)
	}
}
