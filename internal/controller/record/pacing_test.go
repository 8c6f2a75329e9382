// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/status"
	"github.com/tinker-operator/tinker-operator/test/admit"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestDue(t *testing.T) {
	base := v1alpha1.TrainingRunStatus{Attempts: []v1alpha1.Attempt{{Number: 1}}}
	for _, kind := range []string{v1alpha1.ConditionPodsReady, v1alpha1.ConditionSuspended} {
		status.Set(&base.Conditions, &base.Codes, 3, now.Add(-time.Minute), status.False(kind, "R", "m"))
	}
	base.ObservedGeneration, base.State = new(int64(3)), "Training"
	base.Step, base.Metrics = new(int64(41)), []v1alpha1.MetricValue{{Name: contract.MetricPassAt1, Value: 0.5},
		{Name: contract.MetricReward, Value: 0.5}}
	base.LatestCheckpoint = "s41"
	base.Checkpoints = []v1alpha1.Checkpoint{{Name: "s41", Step: 41, State: "s41"}}
	base.Environments = []v1alpha1.EnvironmentStatus{{Name: "e", Reward: new(0.5)}}
	base.Diagnoses = []v1alpha1.Diagnosis{{Cause: "RepliesCut", Message: "90%"}}
	// A step changes all figures.
	step := func(n int64) func(*v1alpha1.TrainingRunStatus) {
		return func(s *v1alpha1.TrainingRunStatus) {
			s.Step = new(n)
			s.Metrics = []v1alpha1.MetricValue{s.Metrics[0], {Name: contract.MetricReward, Value: 0.6},
				{Name: contract.MetricLoss, Value: 1.5}}
			s.Usage = &v1alpha1.Usage{SampledTokens: new(n)}
			s.LatestCheckpoint = "s"
			s.Checkpoints = []v1alpha1.Checkpoint{{Name: "s", Step: n, State: "s"}}
			s.Environments[0].Reward, s.Environments[0].FaultRatio = new(0.6), new(0.1)
			s.Attempts[0].ToStep, s.EffectiveTrainingRatio = new(n), new(0.9)
			s.Diagnoses = []v1alpha1.Diagnosis{{Cause: "RepliesCut", Message: "80%"}}
		}
	}
	cases := map[string]struct {
		change func(*v1alpha1.TrainingRunStatus)
		wrote  time.Duration // ago
		due    bool
		wait   time.Duration
	}{
		"nothing new": {func(*v1alpha1.TrainingRunStatus) {}, time.Hour, false, 0},
		"time that passes is nothing new": {func(s *v1alpha1.TrainingRunStatus) { s.EffectiveTrainingRatio = new(0.5) },
			time.Hour, false, 0},
		"a step soon after another": {step(42), time.Second, false, 29 * time.Second},
		"a step after a while":      {step(42), 30 * time.Second, true, 0},
		"a lasting checkpoint":      {step(60), time.Second, false, 4 * time.Second},
		"a best checkpoint": {func(s *v1alpha1.TrainingRunStatus) {
			step(42)(s)
			s.BestCheckpoint = s.LatestCheckpoint
		}, time.Second, false, 4 * time.Second},
		"an evaluation": {func(s *v1alpha1.TrainingRunStatus) { s.Metrics[0].Value = 0.7 },
			time.Second, false, 4 * time.Second},
		"the evaluation of an environment": {func(s *v1alpha1.TrainingRunStatus) { s.Environments[0].PassAt1 = new(0.7) },
			5 * time.Second, true, 0},
		"a new diagnosis": {func(s *v1alpha1.TrainingRunStatus) { s.Diagnoses = nil }, time.Second, false, 4 * time.Second},
		"a message of a condition": {func(s *v1alpha1.TrainingRunStatus) { s.Conditions[0].Message = "another" }, time.Second,
			false, 4 * time.Second},
		"a worker fewer": {func(s *v1alpha1.TrainingRunStatus) { s.ReadyWorkers = new(int32(1)) }, time.Second, false,
			4 * time.Second},
		"a state is waited for": {func(s *v1alpha1.TrainingRunStatus) { s.State = "Evaluating" }, time.Second, false,
			time.Second},
		"a learner is waited for": {func(s *v1alpha1.TrainingRunStatus) {
			status.Set(&s.Conditions, &s.Codes, 3, now, status.True(v1alpha1.ConditionPodsReady, "Running", "m"))
		}, 2 * time.Second, true, 0},
		"a suspension at once": {func(s *v1alpha1.TrainingRunStatus) {
			status.Set(&s.Conditions, &s.Codes, 3, now, status.Unknown(v1alpha1.ConditionSuspended, "Draining", "m"))
		}, 0, true, 0},
		"a failure at once": {func(s *v1alpha1.TrainingRunStatus) {
			status.Set(&s.Conditions, &s.Codes, 3, now, status.True(v1alpha1.ConditionFailed, "NoProgress", "m"))
		}, 0, true, 0},
		"an attempt's end at once": {func(s *v1alpha1.TrainingRunStatus) {
			s.Attempts[0].CompletionTime = new(metav1.NewTime(now))
		}, 0, true, 0},
		"an attempt at once": {func(s *v1alpha1.TrainingRunStatus) {
			s.Attempts = append([]v1alpha1.Attempt{{Number: 2}}, s.Attempts...)
		}, 0, true, 0},
		"a generation at once": {func(s *v1alpha1.TrainingRunStatus) { s.ObservedGeneration = new(int64(4)) }, 0, true, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			after := base.DeepCopy()
			tc.change(after)
			due, wait := Due(&base, after, now.Add(-tc.wrote), now, Pace{20, writeFigures})
			if due != tc.due || wait != tc.wait {
				t.Errorf("Due = %v, %v, want %v, %v", due, wait, tc.due, tc.wait)
			}
		})
	}
}

// TestFirstCheckpointIsWrittenSoon checks that the first step and its checkpoint are written as soon as changes that
// are not figures.
func TestFirstCheckpointIsWrittenSoon(t *testing.T) {
	before := v1alpha1.TrainingRunStatus{Attempts: []v1alpha1.Attempt{{Number: 1}}}
	after := before.DeepCopy()
	after.LatestCheckpoint, after.Checkpoints = "s", []v1alpha1.Checkpoint{{Name: "s", Step: 1, State: "s"}}
	if due, wait := Due(&before, after, now.Add(-time.Second), now, Pace{20, writeFigures}); due || wait != 4*time.Second {
		t.Errorf("Due = %v, %v, want a write in 4s", due, wait)
	}
}

func TestRuleFor(t *testing.T) {
	run := func(ignored string, artifacts *v1alpha1.Artifacts) *v1alpha1.TrainingRun {
		run := &v1alpha1.TrainingRun{Spec: v1alpha1.TrainingRunSpec{Artifacts: artifacts}}
		run.Status.Capabilities = &v1alpha1.Capabilities{Ignored: []string{ignored}}
		admit.Default(run)
		return run
	}
	cases := map[string]struct {
		run              *v1alpha1.TrainingRun
		since            time.Time
		figures, history time.Duration
	}{
		"no learner":                     {run("ttl", nil), time.Time{}, writeFigures, writeFigures},
		"a new learner":                  {run("ttl", nil), now.Add(time.Second - newLearner), writeEvery, writeNewHistory},
		"an older learner":               {run("ttl", nil), now.Add(-newLearner), writeFigures, writeFigures},
		"an endpoint that lists nothing": {run("list_checkpoints", nil), now.Add(-newLearner), writeEvery, writeFigures},
		"that endpoint, and artifacts": {run("list_checkpoints", &v1alpha1.Artifacts{}), now.Add(-newLearner), writeFigures,
			writeFigures},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := PaceFor(tc.run, tc.since, now); got != (Pace{20, tc.figures}) {
				t.Errorf("RuleFor = %+v, want figures every %v", got, tc.figures)
			}
			if got := HistoryEvery(tc.since, now); got != tc.history {
				t.Errorf("HistoryEvery = %v, want %v", got, tc.history)
			}
		})
	}
}

func TestRetriesAreAtMostAHalfMinuteApart(t *testing.T) {
	limiter, request := RetryRates(), reconcile.Request{}
	for range 20 {
		limiter.When(request)
	}
	if wait := limiter.When(request); wait != 30*time.Second {
		t.Errorf("reconciles that fail are %s apart, want 30s", wait)
	}
}
