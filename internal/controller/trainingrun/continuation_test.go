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
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// TestMessagesOfARunThatOnlyEvaluates checks that no message is about steps or checkpoints.
func TestMessagesOfARunThatOnlyEvaluates(t *testing.T) {
	running := observe.Learner{Job: newJob("one"), Pod: newPod()}
	evaluates := func(run *v1alpha1.TrainingRun) { run.Spec.Mode = v1alpha1.ModeEvaluate }
	run := newRun(evaluates, attempts(inProgress(1)))
	seen := observing(1, running, replying(contract.HeartbeatReply{
		Attempt: 1, Progress: contract.Progress{Phase: contract.PhaseEvaluating, Lineage: "abc", WorkersSeen: 2},
	}))
	got := computeStatus(run, seen, planned(run, seen), now)
	if got.State != v1alpha1.StateEvaluating || got.Steps != nil || status.Steps(&got) != "" {
		t.Errorf("state is %s, progress %q of %v steps; want Evaluating and no progress in steps", got.State,
			status.Steps(&got), got.Steps)
	}
	halted := newRun(evaluates, suspend)
	seen = observing(0, observe.Learner{}, func(o *observe.State) { o.Rollout = nil })
	suspended := computeStatus(halted, seen, planned(halted, seen), now)
	for _, tc := range []struct {
		status v1alpha1.TrainingRunStatus
		kind   string
		want   string
	}{
		{got, v1alpha1.ConditionProgressing, "The run makes progress. A new attempt evaluates again."},
		{suspended, v1alpha1.ConditionSuspended, "The run is suspended until suspend is false; then it evaluates again."},
	} {
		if c := meta.FindStatusCondition(tc.status.Conditions, tc.kind); c.Message != tc.want {
			t.Errorf("%s says %q, want %q", tc.kind, c.Message, tc.want)
		}
	}
}

// TestContinuation checks that Progressing says from which state a new attempt would continue, and reports the losses
// of a resume.
func TestContinuation(t *testing.T) {
	const resumes = "The run makes progress. A new attempt continues from status.latestCheckpoint"
	artifacts := func(run *v1alpha1.TrainingRun) { run.Spec.Artifacts = &v1alpha1.Artifacts{ClaimName: "runs"} }
	for name, tc := range map[string]struct {
		run         *v1alpha1.TrainingRun
		unsupported []string
		change      func(*contract.Progress)
		want        string
	}{
		"no checkpoint": {newRun(attempts(inProgress(1))), nil,
			func(p *contract.Progress) { p.Checkpoints = nil },
			"The run makes progress. No checkpoint has been saved yet."},
		"checkpoints are listed": {newRun(attempts(inProgress(1)), artifacts), nil, nil, resumes + " or a newer state."},
		"rows name the checkpoints": {newRun(attempts(inProgress(1)), artifacts), []string{"list_checkpoints"}, nil,
			resumes + " or a newer state."},
		"nothing but the status names one": {newRun(attempts(inProgress(1))), []string{"list_checkpoints"}, nil,
			resumes + ". The endpoint does not list checkpoints, so that steps after it are done again. With " +
				"spec.artifacts a run also finds newer ones."},
		"an endpoint that forgets the optimizer": {newRun(attempts(inProgress(1))), []string{"optimizer_restore"}, nil,
			resumes + ". The endpoint does not restore the optimizer: Adam starts from zero after each resume, as " +
				"failurePolicy.requireOptimizerState allows."},
		"an attempt that began anew with Adam": {newRun(attempts(inProgress(1))), nil,
			func(p *contract.Progress) { p.ColdOptimizer = true },
			resumes + ". Attempt 1 resumed from a state without its optimizer: Adam started from zero, as " +
				"failurePolicy.requireOptimizerState allows."},
		"an attempt that could not sample old versions": {newRun(attempts(inProgress(1))), nil,
			func(p *contract.Progress) { p.LostVersions = 2 },
			resumes + ". 2 versions within algorithm.lag had expired when attempt 1 began, and newer ones were sampled " +
				"instead: another run of the spec has other weights."},
	} {
		t.Run(name, func(t *testing.T) {
			reply := contract.HeartbeatReply{
				Attempt: 1, Progress: contract.Progress{
					Phase: contract.PhaseTraining, Lineage: "abc", WorkersSeen: 2,
					Checkpoints: []contract.Checkpoint{{Step: 5, State: "tinker://m/weights/5"}},
					Capabilities: &contract.Capabilities{BaseURL: "http://tinkersim", Model: "m",
						Unsupported: tc.unsupported},
				},
			}
			if tc.change != nil {
				tc.change(&reply.Progress)
			}
			seen := observing(1, observe.Learner{Job: newJob("one"), Pod: newPod()}, replying(reply))
			got := computeStatus(tc.run, seen, planned(tc.run, seen), now)
			if c := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionProgressing); c.Status != "True" ||
				c.Message != tc.want {
				t.Errorf("Progressing is %s: %q, want True: %q", c.Status, c.Message, tc.want)
			}
		})
	}
}

// TestContinuationWithoutLearner checks that a run without a learner names the step from which it would continue, and
// no step if it cannot continue.
func TestContinuationWithoutLearner(t *testing.T) {
	crashed := endedAttempt(2, contract.CauseCrashed, 5, 5, 0)
	saved := func(r *v1alpha1.TrainingRun) {
		r.Status.LatestCheckpoint = "5"
		r.Status.Checkpoints = []v1alpha1.Checkpoint{{Name: "5", Step: 5, State: "tinker://m/weights/5"}}
	}
	for name, tc := range map[string]struct {
		run  *v1alpha1.TrainingRun
		want string
	}{
		"between attempts": {newRun(attempts(crashed, endedAttempt(1, contract.CauseCrashed, 5, 5, time.Minute)), saved),
			" A new attempt continues from step 5 or a newer state."},
		"failed": {newRun(attempts(crashed), saved, func(r *v1alpha1.TrainingRun) {
			status.Set(&r.Status.Conditions, &r.Status.Codes, 1, now, status.True("Failed", "RestartsExhausted", "m"))
		}), "The run is over. A retry continues from step 5."},
		"failed without a state": {newRun(attempts(crashed), saved, func(r *v1alpha1.TrainingRun) {
			status.Set(&r.Status.Conditions, &r.Status.Codes, 1, now, status.True("Failed", "NoUsableCheckpoint", "m"))
		}), "The run is over."},
	} {
		t.Run(name, func(t *testing.T) {
			seen := observing(0, observe.Learner{})
			got := computeStatus(tc.run, seen, planned(tc.run, seen), now)
			c := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionProgressing)
			if c.Status != "False" || !strings.HasSuffix(c.Message, tc.want) {
				t.Errorf("Progressing is %s: %q, want False with %q at its end", c.Status, c.Message, tc.want)
			}
		})
	}
}

// TestAnswerTime checks the time since which a learner answers: from its first reply, and again from its first reply
// after a silence.
func TestAnswerTime(t *testing.T) {
	answered := inProgress(1)
	answered.AnswerTime = ago(time.Hour)
	unreachable := func(r *v1alpha1.TrainingRun) {
		status.Set(&r.Status.Conditions, &r.Status.Codes, 1, now.Add(-time.Minute),
			status.Unknown("PodsReady", "Unreachable", "m"))
	}
	former := func(r *v1alpha1.TrainingRun) {
		status.Set(&r.Status.Conditions, &r.Status.Codes, 1, now,
			status.True("LearnerRunning", "Running", "of an earlier build"))
	}
	reply := replying(contract.HeartbeatReply{Attempt: 1, Progress: contract.Progress{Phase: contract.PhaseTraining}})
	for name, tc := range map[string]struct {
		run  *v1alpha1.TrainingRun
		seen observe.State
		want *metav1.Time
	}{
		"the first reply": {newRun(attempts(inProgress(1))), observing(1, runningFor(time.Hour), reply), ago(0)},
		"a further reply": {newRun(attempts(answered), former), observing(1, runningFor(time.Hour), reply),
			ago(time.Hour)},
		"a reply after a silence": {newRun(attempts(answered), unreachable), observing(1, runningFor(time.Hour), reply),
			ago(0)},
		"no reply yet": {newRun(attempts(inProgress(1))), observing(1, runningFor(time.Second)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := computeStatus(tc.run, tc.seen, planned(tc.run, tc.seen), now)
			if diff := cmp.Diff(tc.want, got.Attempts[0].AnswerTime); diff != "" {
				t.Errorf("answerTime (-want +got):\n%s", diff)
			}
			if c := meta.FindStatusCondition(got.Conditions, "LearnerRunning"); c != nil {
				t.Errorf("the status keeps a condition of an earlier build: %+v", c)
			}
		})
	}
}
