// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

func show(t *testing.T, s v1alpha1.TrainingRunStatus, kinds ...string) {
	t.Helper()
	for _, k := range kinds {
		c := meta.FindStatusCondition(s.Conditions, k)
		t.Logf("  %s=%s %s: %q", k, c.Status, c.Reason, c.Message)
	}
	t.Logf("  state=%s", s.State)
}

// 8. the learner's Job is refused; workers' Job is refused.
func TestReviewRefused(t *testing.T) {
	t.Skip("finding not repaired yet: controllers H4")
	run := newRun(attempts(endedAttempt(4, contract.CauseDisrupted, 0, 0, 0), endedAttempt(3, contract.CauseDisrupted, 0, 0, time.Minute)), func(r *v1alpha1.TrainingRun) {
		r.Status.Attempts[0].Message = "The API server refused the learner's Job: Job is invalid: volumeMounts[0].name: Not found"
	})
	seen := observing(0, learner{})
	show(t, computeStatus(run, seen, makePlan(run, seen, now), now), "Accepted", "LearnerRunning", "Progressing", "RolloutsReady", "Ready", "Stalled")
	run = newRun(attempts(inProgress(1)))
	seen = observing(1, learner{newJob("one"), newPod()}, replying(contract.HeartbeatReply{Attempt: 1, Progress: contract.Progress{Phase: contract.PhaseTraining, Lineage: "a"}}), func(o *observed) { o.rollout = nil })
	t.Log("the workers' Job is refused each time:")
	show(t, computeStatus(run, seen, makePlan(run, seen, now), now), "Accepted", "Progressing", "RolloutsReady", "Ready", "Stalled")
	// quota: the Job is there, its pod is not.
	run = newRun(attempts(inProgress(1)))
	seen = observing(1, learner{newJob("one"), nil})
	t.Log("the Job is there and its pod is refused by a quota:")
	show(t, computeStatus(run, seen, makePlan(run, seen, now), now), "LearnerRunning", "Progressing", "Ready", "Stalled")
}
