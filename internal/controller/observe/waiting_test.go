// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
)

func TestWaitingNamesTheField(t *testing.T) {
	run := startedRun()
	run.Spec.Tinker.APIKeySecretKeyRef = &ref.SecretKey{Name: "key"}
	run.Spec.Artifacts = &v1alpha1.Artifacts{ClaimName: "runs", SecretRef: &ref.Secret{Name: "bucket"}}
	noClaim := func(name string) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			Message: `0/1 nodes are available: persistentvolumeclaim "` + name + `" not found. not found`,
		}}}}
	}
	noSecret := func(name string) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "learner",
			State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError",
					Message: `secret "` + name + `" not found`},
			}}}}}
	}
	for field, pod := range map[string]*corev1.Pod{
		"artifacts.claimName":                  noClaim("runs"),
		"podOverrides[target=Learner].volumes": noClaim("own"),
		"tinker.apiKeySecretKeyRef":            noSecret("key"),
		"artifacts.secretRef":                  noSecret("bucket"),
		"podOverrides[target=Learner].env or podOverrides[target=Learner].envFrom": noSecret("own"),
	} {
		if got := LearnerWaits(run, pod).Field; got != field {
			t.Errorf("the field is %q, want %q", got, field)
		}
	}
}
