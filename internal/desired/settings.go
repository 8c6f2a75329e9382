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
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
)

// fieldResumeFrom is the field that names the run to continue.
const fieldResumeFrom = "resumeFrom"

// fieldSupervised is the field with the data of a supervised run.
const fieldSupervised = "supervised"

// fieldEndpointRef is the field of the endpoint of the platform.
const fieldEndpointRef = "tinker.endpointRef"

// settingAPIKey and FieldTokenizerToken are the fields of the API key and of the token for the tokenizer's repository.
const (
	settingAPIKey       = "tinker.apiKeySecretKeyRef"
	FieldTokenizerToken = "model.tokenizer.tokenSecretKeyRef"
)

// fieldAlgorithm is the field of the algorithm, and FieldSteps and FieldEpochs are the fields of its length, which may
// be raised if the learning rate does not depend on it.
const (
	fieldAlgorithm = "algorithm"
	FieldSteps     = "algorithm.steps"
	FieldEpochs    = "algorithm.epochs"
)

// length returns the steps and epochs of a run, if they do not decide the weights; zero otherwise.
func length(run *v1alpha1.TrainingRun) algorithm.Algorithm {
	a := run.Spec.Algorithm
	if a == nil || a.Optimizer.Schedule.Falls() {
		return algorithm.Algorithm{}
	}
	return algorithm.Algorithm{Steps: a.Steps, Epochs: a.Epochs}
}

// Raised reports whether the spec asks for more steps or epochs than the newest attempt was started with.
func Raised(run *v1alpha1.TrainingRun) bool {
	wanted, is := length(run), run.Status
	return is.Steps != nil && wanted.Steps > *is.Steps || is.Epochs != nil && wanted.Epochs > *is.Epochs
}

// ChangedKey returns the field of a key or token whose reference has changed since a learner's Job was created; "" if
// there is none. The learner is restarted for the change, since it may wait because the former key is refused.
func ChangedKey(run *v1alpha1.TrainingRun, job *batchv1.Job) string {
	changed := PendingChanges(run, job)
	for _, field := range []string{settingAPIKey, FieldTokenizerToken} {
		if slices.Contains(changed, field) {
			return field
		}
	}
	return ""
}

// tokenizerToken returns the Secret key of the token for the tokenizer's repository; nil if there is none.
func tokenizerToken(run *v1alpha1.TrainingRun) *ref.SecretKey {
	if run.Spec.Model.Tokenizer == nil {
		return nil
	}
	return run.Spec.Model.Tokenizer.TokenSecretKeyRef
}

// withoutToken returns the settings of a model that decide the weights.
func withoutToken(model v1alpha1.Model) v1alpha1.Model {
	if model.Tokenizer != nil {
		tokenizer := *model.Tokenizer
		tokenizer.TokenSecretKeyRef = nil
		model.Tokenizer = &tokenizer
	}
	return model
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
		FieldTokenizerToken:                   templateDigest(tokenizerToken(run)),
		"artifacts":                           templateDigest(run.Spec.Artifacts),
		"budget":                              templateDigest(run.Spec.Budget),
		"tracking":                            templateDigest(run.Spec.Tracking),
		"tinker.projectID":                    templateDigest(run.Spec.Tinker.ProjectID),
		"tinker.proxyURL":                     templateDigest(run.Spec.Tinker.ProxyURL),
		"tinker.caBundleConfigMapKeyRef":      templateDigest(run.Spec.Tinker.CABundleConfigMapKeyRef),
		"tinker.clientCertificateSecretRef":   templateDigest(run.Spec.Tinker.ClientCertificateSecretRef),
		"failurePolicy.requireOptimizerState": templateDigest(run.Spec.FailurePolicy.RequireOptimizerState),
		FieldSteps:                            templateDigest(length(run).Steps),
		FieldEpochs:                           templateDigest(length(run).Epochs),
	}
	maps.Copy(digests, fixedSettingsOf(run))
	return digests
}

// fixedSettingsOf digests each field that decides the weights, which can be changed until a first step is committed.
func fixedSettingsOf(run *v1alpha1.TrainingRun) map[string]string {
	return map[string]string{
		"model":          templateDigest(withoutToken(run.Spec.Model)),
		"tinker.baseURL": templateDigest(run.Spec.Tinker.BaseURL),
		fieldEndpointRef: templateDigest(run.Spec.Tinker.EndpointRef),
		"environments":   templateDigest(run.Spec.Environments),
		fieldAlgorithm:   templateDigest(withoutLength(run.Spec.Algorithm)),
		fieldSupervised:  templateDigest(run.Spec.Supervised),
		"initFrom":       templateDigest(run.Spec.InitFrom),
		fieldResumeFrom:  templateDigest(run.Spec.ResumeFrom),
	}
}

// RestartsUnfixed reports whether a change of a field restarts the learner of a run that has committed no step: it
// decides the weights, or how many steps there are, which can be lowered until then.
func RestartsUnfixed(field string) bool {
	return DecidesWeights(field) || field == FieldSteps || field == FieldEpochs
}

// DecidesWeights reports whether a field of the spec decides the weights.
func DecidesWeights(field string) bool {
	_, decides := fixedSettingsOf(&v1alpha1.TrainingRun{})[field]
	return decides
}

// ChangedSettings are the fields of the spec, sorted, that decide the weights and differ from the settings of a
// learner's Job or a run file; known is false if its annotations do not have them.
func ChangedSettings(run *v1alpha1.TrainingRun, annotations map[string]string) (changed []string, known bool) {
	return compare(run, fixedSettingsOf(run), annotations)
}

// compare returns the sorted fields whose digests differ in annotations, and whether annotations have all of them.
func compare(run *v1alpha1.TrainingRun, digests, annotations map[string]string) (changed []string, all bool) {
	var former map[string]string
	all = json.Unmarshal([]byte(annotations[v1alpha1.AnnotationSettings]), &former) == nil
	if _, noted := former[FieldSteps]; !noted {
		// Jobs that were created before steps could be raised have the steps and epochs in the digest of the algorithm.
		if _, asked := digests[fieldAlgorithm]; asked {
			digests[fieldAlgorithm] = templateDigest(run.Spec.Algorithm)
		}
		delete(digests, FieldSteps)
		delete(digests, FieldEpochs)
	}
	for field, digest := range digests {
		was, noted := former[field]
		if !noted && slices.Contains(
			[]string{fieldResumeFrom, fieldSupervised, fieldEndpointRef, FieldTokenizerToken}, field) {
			// Jobs that were created before the field existed do not note it, nor do Jobs without an endpoint or a token.
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
// read. It omits the fields of the TinkerEndpoint and of the token for the tokenizer if the run has none, and thus
// equals the annotation of versions without these fields.
func learnerSettings(run *v1alpha1.TrainingRun) string {
	digests := settingsOf(run)
	if run.Spec.Tinker.EndpointRef == nil {
		delete(digests, fieldEndpointRef)
	}
	if tokenizerToken(run) == nil {
		delete(digests, FieldTokenizerToken)
	}
	return string(encode(digests))
}

// PendingChanges are the fields of the spec, sorted, whose changes since a learner's Job was created wait for the next
// attempt; none for a Job without a record of its settings.
func PendingChanges(run *v1alpha1.TrainingRun, job *batchv1.Job) []string {
	if job == nil {
		return nil
	}
	digests := settingsOf(run)
	if run.Status.StartTime != nil && ptr.Deref(run.Status.SettingsFixed, true) {
		// The API server refuses a change of these; their defaults may differ between two versions of the operator.
		maps.DeleteFunc(digests, func(field, _ string) bool { return DecidesWeights(field) })
	}
	changed, _ := compare(run, digests, job.Annotations)
	return changed
}
