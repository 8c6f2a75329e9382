// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"encoding/json"
	"slices"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// settingAPIKey is the field of the API key.
const settingAPIKey = "tinker.apiKeySecretRef"

// APIKeyChanged says that the spec names another API key than a learner's Job was created with.
func APIKeyChanged(run *v1alpha1.TrainingRun, job *batchv1.Job) bool {
	return slices.Contains(PendingChanges(run, job), settingAPIKey)
}

// settingsOf digests each field of the spec that a learner reads when its attempt starts, and that may be changed later.
func settingsOf(run *v1alpha1.TrainingRun) map[string]string {
	return map[string]string{
		"checkpoints":                       templateDigest(run.Spec.Checkpoints),
		"evaluation":                        templateDigest(run.Spec.Evaluation),
		"rollouts.concurrency":              templateDigest(run.Spec.Rollouts.Concurrency),
		"learner.pod":                       templateDigest(run.Spec.Learner.Pod),
		settingAPIKey:                       templateDigest(run.Spec.Tinker.APIKeySecretRef),
		"artifacts":                         templateDigest(run.Spec.Artifacts),
		"tinker.proxyURL":                   templateDigest(run.Spec.Tinker.ProxyURL),
		"tinker.caBundleConfigMapRef":       templateDigest(run.Spec.Tinker.CABundleConfigMapRef),
		"tinker.clientCertificateSecretRef": templateDigest(run.Spec.Tinker.ClientCertificateSecretRef),
		"failurePolicy.requireOptimizer":    templateDigest(run.Spec.FailurePolicy.RequireOptimizer),
	}
}

// learnerSettings is the annotation of a learner's Job that PendingChanges reads.
func learnerSettings(run *v1alpha1.TrainingRun) string {
	data, err := json.Marshal(settingsOf(run))
	if err != nil {
		panic("desired: encoding settings: " + err.Error()) // It is a map of strings.
	}
	return string(data)
}

// PendingChanges are the fields of the spec, sorted, whose changes since a learner's Job was created wait for the next
// attempt; none for a Job that does not say what it was created with.
func PendingChanges(run *v1alpha1.TrainingRun, job *batchv1.Job) []string {
	var former map[string]string
	if job == nil || json.Unmarshal([]byte(job.Annotations[v1alpha1.AnnotationSettings]), &former) != nil {
		return nil
	}
	var changed []string
	for field, digest := range settingsOf(run) {
		if was, known := former[field]; known && was != digest {
			changed = append(changed, field)
		}
	}
	slices.Sort(changed)
	return changed
}
