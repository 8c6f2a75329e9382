// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

func TestPlanForChangedCredentials(t *testing.T) {
	run := newRun(attempts(inProgress(1)))
	learnerJob := desired.LearnerJob(run, 1, "link-1", desired.Settings{Image: "image"})
	seen := observing(1, learner{learnerJob, newPod()}, replying(contract.HeartbeatReply{Attempt: 1, Progress: contract.Progress{Phase: contract.PhaseTraining}}))
	seen.credentials = "link-1"
	if p := makePlan(run, seen, now); len(p.deletes) > 0 || p.credentialsChanged {
		t.Errorf("a learner with this manager's credentials is stopped: %+v", outcomeOf(p))
	}
	seen.credentials = "link-2"
	p := makePlan(run, seen, now)
	if len(p.deletes) != 1 || p.deletes[0].GetName() != learnerJob.Name || !p.credentialsChanged || p.start != 0 {
		t.Errorf("the plan for other credentials is %+v", outcomeOf(p))
	}
	learnerJob.DeletionTimestamp = ago(0)
	if p := makePlan(run, seen, now); len(p.deletes) > 0 || p.credentialsChanged {
		t.Errorf("a learner that is being stopped is stopped again: %+v", outcomeOf(p))
	}
}
