// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

func TestPlanForChangedCredentials(t *testing.T) {
	run := newRun(attempts(inProgress(1)))
	learnerJob := desired.LearnerJob(run, 1, "link-1", desired.Settings{Image: "image"})
	seen := observing(1, observe.Learner{Job: learnerJob, Pod: newPod()},
		replying(contract.HeartbeatReply{Attempt: 1, Progress: contract.Progress{Phase: contract.PhaseTraining}}))
	seen.Credentials = "link-1"
	if p := makePlan(run, seen, now); len(p.deletes) > 0 || p.credentialsChanged {
		t.Errorf("a learner with this manager's credentials is stopped: %+v", outcomeOf(p))
	}
	seen.Credentials = "credentials-1"
	if p := makePlan(run, seen, now); len(p.deletes) > 0 || p.credentialsChanged {
		t.Errorf("a learner with a Secret of an earlier manager of the same key is stopped: %+v", outcomeOf(p))
	}
	seen.Credentials = "credentials-2"
	p := makePlan(run, seen, now)
	if len(p.deletes) != 1 || p.deletes[0].GetName() != learnerJob.Name || !p.credentialsChanged || p.start != 0 {
		t.Errorf("the plan for other credentials is %+v", outcomeOf(p))
	}
	learnerJob.DeletionTimestamp = ago(0)
	if p := makePlan(run, seen, now); len(p.deletes) > 0 || p.credentialsChanged {
		t.Errorf("a learner that is being stopped is stopped again: %+v", outcomeOf(p))
	}
}

// TestPlanForChangedAPIKey checks that a running learner is stopped once, at a saved state, if the API key has
// changed.
func TestPlanForChangedAPIKey(t *testing.T) {
	run := newRun(attempts(inProgress(1)))
	job := desired.LearnerJob(run, 1, "link-1", desired.Settings{Image: "image"})
	seen := observing(1, observe.Learner{Job: job, Pod: newPod()},
		replying(contract.HeartbeatReply{Attempt: 1, Progress: contract.Progress{Phase: contract.PhaseTraining}}))
	seen.Credentials = "link-1"
	run.Spec.Checkpoints.EverySteps = new(int64(7))
	if p := makePlan(run, seen, now); len(p.deletes) > 0 || p.keyChanged != "" {
		t.Errorf("a learner is stopped for another change: %+v", outcomeOf(p))
	}
	run.Spec.Tinker.APIKeySecretKeyRef.Name = "rotated"
	p := makePlan(run, seen, now)
	if len(p.deletes) != 1 || p.deletes[0].GetName() != job.Name || p.keyChanged != "tinker.apiKeySecretKeyRef" ||
		p.start != 0 {
		t.Errorf("the plan for another key is %+v", outcomeOf(p))
	}
	job.DeletionTimestamp = ago(0)
	if p := makePlan(run, seen, now); len(p.deletes) > 0 || p.keyChanged != "" {
		t.Errorf("a learner that is being stopped is stopped again: %+v", outcomeOf(p))
	}
}

// TestPlanForChangedToken restarts a learner that waits for its tokenizer with another token.
func TestPlanForChangedToken(t *testing.T) {
	run := newRun(attempts(inProgress(1)))
	run.Spec.Model.Tokenizer = &v1alpha1.Tokenizer{Repository: "org/gated"}
	job := desired.LearnerJob(run, 1, "link-1", desired.Settings{Image: "image"})
	seen := observing(1, observe.Learner{Job: job, Pod: newPod()},
		replying(contract.HeartbeatReply{Attempt: 1, Progress: contract.Progress{Phase: contract.PhaseOpening}}))
	seen.Credentials = "link-1"
	run.Spec.Model.Tokenizer.TokenSecretKeyRef = &ref.SecretKey{Name: "hf", Key: "TOKEN"}
	p := makePlan(run, seen, now)
	if len(p.deletes) != 1 || p.keyChanged != desired.FieldTokenizerToken || p.settingsChanged || p.start != 0 {
		t.Errorf("the plan for a first token is %+v, changed key %q, settings %v", outcomeOf(p), p.keyChanged,
			p.settingsChanged)
	}
}

// TestTargetsOfEarlierManagers checks that a learner with the Secret of an earlier manager is sent the workers' token.
func TestTargetsOfEarlierManagers(t *testing.T) {
	run := newRun(attempts(inProgress(1)))
	present := desired.LearnerJob(run, 1, "credentials-1", desired.Settings{Image: "image"})
	earlier := present.DeepCopy()
	for i := range earlier.Spec.Template.Spec.Volumes {
		if secret := earlier.Spec.Template.Spec.Volumes[i].Secret; secret != nil {
			secret.Items = slices.DeleteFunc(secret.Items,
				func(i corev1.KeyToPath) bool { return i.Key == contract.ManagerTokenKey })
		}
	}
	for name, tc := range map[string]struct {
		job  *batchv1.Job
		want bool
	}{
		"a Job of this manager":       {present, false},
		"a Job of an earlier manager": {earlier, true},
		"a pod whose Job is deleted":  {nil, false},
	} {
		all := targets(run, observing(1, observe.Learner{Job: tc.job, Pod: newPod()}), contract.DesiredRun)
		if len(all) != 1 || all[0].WorkerToken != tc.want {
			t.Errorf("%s: targets are %+v, want WorkerToken %t", name, all, tc.want)
		}
	}
}
