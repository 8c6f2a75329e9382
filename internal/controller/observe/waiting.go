// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/podstate"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// LearnerWaits returns the problem that keeps a learner's pod waiting, with the field of the run that repairs it.
func LearnerWaits(run *v1alpha1.TrainingRun, pod *corev1.Pod) problem.Problem {
	return podstate.Waiting(pod, desired.LearnerContainer, podstate.Fields{
		Image: "podOverrides[target=Learner].image or podOverrides[target=Learner].imagePullSecrets",
		Secret: func(name string) string {
			switch artifacts := run.Spec.Artifacts; {
			case run.Spec.Tinker.APIKeySecretKeyRef != nil && run.Spec.Tinker.APIKeySecretKeyRef.Name == name:
				return "tinker.apiKeySecretKeyRef"
			case artifacts != nil && artifacts.SecretRef != nil && artifacts.SecretRef.Name == name:
				return "artifacts.secretRef"
			default:
				return "podOverrides[target=Learner].env or podOverrides[target=Learner].envFrom"
			}
		},
		Claim: func(name string) string {
			if artifacts := run.Spec.Artifacts; artifacts != nil && artifacts.ClaimName == name {
				return "artifacts.claimName"
			}
			return "podOverrides[target=Learner].volumes"
		},
		Pod: "podOverrides[target=Learner]",
	})
}
