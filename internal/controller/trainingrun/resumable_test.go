// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
)

// TestMessagesOfARunThatOnlyEvaluates expects none of steps or checkpoints.
func TestMessagesOfARunThatOnlyEvaluates(t *testing.T) {
	running := observe.Learner{Job: newJob("one"), Pod: newPod()}
	evaluates := func(run *v1alpha1.TrainingRun) { run.Spec.Mode = v1alpha1.ModeEvaluate }
	run := newRun(evaluates, attempts(inProgress(1)))
	seen := observing(1, running, replying(contract.HeartbeatReply{
		Attempt: 1, Progress: contract.Progress{Phase: contract.PhaseEvaluating, Lineage: "abc", WorkersSeen: 2},
	}))
	got := computeStatus(run, seen, planned(run, seen), now)
	if got.State != v1alpha1.StateEvaluating || got.Steps != nil || got.Progress != "" {
		t.Errorf("state is %s, progress %q of %v steps; want Evaluating and no progress in steps", got.State, got.Progress,
			got.Steps)
	}
	halted := newRun(evaluates, suspend)
	seen = observing(0, observe.Learner{}, func(o *observe.State) { o.Rollout = nil })
	suspended := computeStatus(halted, seen, planned(halted, seen), now)
	for _, tc := range []struct {
		status v1alpha1.TrainingRunStatus
		kind   string
		want   string
	}{
		{got, v1alpha1.ConditionProgressing, "The run makes progress."},
		{got, v1alpha1.ConditionResumable, "The run only evaluates and saves no checkpoint: a new attempt evaluates again."},
		{suspended, v1alpha1.ConditionSuspended, "The run is suspended until suspend is false; then it evaluates again."},
	} {
		if c := meta.FindStatusCondition(tc.status.Conditions, tc.kind); c.Message != tc.want {
			t.Errorf("%s says %q, want %q", tc.kind, c.Message, tc.want)
		}
	}
}

// TestMessageOfResumable checks that the condition says from what a run resumes at an endpoint that lists no
// checkpoints.
func TestMessageOfResumable(t *testing.T) {
	artifacts := func(run *v1alpha1.TrainingRun) { run.Spec.Artifacts = &v1alpha1.Artifacts{ClaimName: "runs"} }
	for name, tc := range map[string]struct {
		run         *v1alpha1.TrainingRun
		unsupported []string
		want        string
	}{
		"checkpoints are listed": {newRun(attempts(inProgress(1)), artifacts), nil,
			"The run can resume from status.latestCheckpoint."},
		"rows name the checkpoints": {
			newRun(attempts(inProgress(1)), artifacts), []string{"list_checkpoints"},
			"The run can resume: the endpoint does not list checkpoints, and the rows of the artifact store name them.",
		},
		"nothing but the status names one": {
			newRun(attempts(inProgress(1))), []string{"list_checkpoints"},
			"The run can resume from status.latestCheckpoint alone, because the endpoint does not list checkpoints: steps " +
				"after it are done " +
				"again. With spec.artifacts a run also finds newer ones.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			seen := observing(1, observe.Learner{Job: newJob("one"), Pod: newPod()}, replying(contract.HeartbeatReply{
				Attempt: 1, Progress: contract.Progress{
					Phase: contract.PhaseTraining, Lineage: "abc",
					Checkpoints: []contract.Checkpoint{{Step: 5, State: "tinker://m/weights/5"}},
					Capabilities: &contract.Capabilities{BaseURL: "http://tinkersim", Model: "m",
						Supported: []string{"optimizer_restore"}, Unsupported: tc.unsupported},
				},
			}))
			got := computeStatus(tc.run, seen, planned(tc.run, seen), now)
			if c := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionResumable); c.Status != "True" ||
				c.Message != tc.want {
				t.Errorf("Resumable is %s: %q, want %q", c.Status, c.Message, tc.want)
			}
		})
	}
}
