// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"encoding/json"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// fieldResumeFrom is the field that names the run to continue.
const fieldResumeFrom = "resumeFrom"

// settingAPIKey is the field of the API key.
const settingAPIKey = "tinker.apiKeySecretKeyRef"

// APIKeyChanged says that the spec names another API key than a learner's Job was created with.
func APIKeyChanged(run *v1alpha1.TrainingRun, job *batchv1.Job) bool {
	return slices.Contains(PendingChanges(run, job), settingAPIKey)
}

// settingsOf digests each field of the spec that a learner reads when its attempt starts, and that may be changed
// later.
func settingsOf(run *v1alpha1.TrainingRun) map[string]string {
	digests := map[string]string{
		"checkpoints":                         templateDigest(run.Spec.Checkpoints),
		"evaluation":                          templateDigest(run.Spec.Evaluation),
		"rollouts.concurrency":                templateDigest(run.Spec.Rollouts.Concurrency),
		"podOverrides":                        templateDigest(PodOverrides(run, v1alpha1.TargetLearner)),
		settingAPIKey:                         templateDigest(run.Spec.Tinker.APIKeySecretKeyRef),
		"artifacts":                           templateDigest(run.Spec.Artifacts),
		"budget":                              templateDigest(run.Spec.Budget),
		"tracking":                            templateDigest(run.Spec.Tracking),
		"tinker.proxyURL":                     templateDigest(run.Spec.Tinker.ProxyURL),
		"tinker.caBundleConfigMapKeyRef":      templateDigest(run.Spec.Tinker.CABundleConfigMapKeyRef),
		"tinker.clientCertificateSecretRef":   templateDigest(run.Spec.Tinker.ClientCertificateSecretRef),
		"failurePolicy.requireOptimizerState": templateDigest(run.Spec.FailurePolicy.RequireOptimizerState),
	}
	maps.Copy(digests, fixedSettingsOf(run))
	return digests
}

// fixedSettingsOf digests each field that decides the weights, which can be changed until a first step is committed.
func fixedSettingsOf(run *v1alpha1.TrainingRun) map[string]string {
	return map[string]string{
		"model":          templateDigest(run.Spec.Model),
		"tinker.baseURL": templateDigest(run.Spec.Tinker.BaseURL),
		"environments":   templateDigest(run.Spec.Environments),
		"algorithm":      templateDigest(run.Spec.Algorithm),
		"initFrom":       templateDigest(run.Spec.InitFrom),
		fieldResumeFrom:  templateDigest(run.Spec.ResumeFrom),
	}
}

// DecidesWeights says that a field of the spec decides the weights.
func DecidesWeights(field string) bool {
	_, decides := fixedSettingsOf(&v1alpha1.TrainingRun{})[field]
	return decides
}

// ChangedSettings are the fields of the spec, sorted, that decide the weights and differ from those that a learner's
// Job, or a run file, was made from; known is false where its annotations do not say.
func ChangedSettings(run *v1alpha1.TrainingRun, annotations map[string]string) (changed []string, known bool) {
	return compare(fixedSettingsOf(run), annotations)
}

// compare gives the fields, sorted, whose digests annotations note otherwise, and whether they note all.
func compare(digests, annotations map[string]string) (changed []string, all bool) {
	var former map[string]string
	all = json.Unmarshal([]byte(annotations[v1alpha1.AnnotationSettings]), &former) == nil
	for field, digest := range digests {
		was, noted := former[field]
		if !noted && field == fieldResumeFrom { // Jobs that were created before the field existed do not note it.
			was, noted = templateDigest((*v1alpha1.ResumeFrom)(nil)), true
		}
		if all = all && noted; noted && was != digest {
			changed = append(changed, field)
		}
	}
	slices.Sort(changed)
	return changed, all
}

// learnerSettings is the annotation of a learner's Job, and of its run file, that PendingChanges and ChangedSettings
// read.
func learnerSettings(run *v1alpha1.TrainingRun) string {
	return string(encode(settingsOf(run)))
}

// PendingChanges are the fields of the spec, sorted, whose changes since a learner's Job was created wait for the next
// attempt; none for a Job that does not say what it was created with.
func PendingChanges(run *v1alpha1.TrainingRun, job *batchv1.Job) []string {
	if job == nil {
		return nil
	}
	digests := settingsOf(run)
	if run.Status.StartTime != nil && ptr.Deref(run.Status.SettingsFixed, true) {
		// The API server refuses a change of these; their defaults may differ between two versions of the operator.
		maps.DeleteFunc(digests, func(field, _ string) bool { return DecidesWeights(field) })
	}
	changed, _ := compare(digests, job.Annotations)
	return changed
}
