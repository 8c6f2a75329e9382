// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// How long a probe may take in all, without and with data that it has to read.
const (
	probeDeadlineSeconds     = 900
	probeDataDeadlineSeconds = 3600
)

const (
	learnerGraceSeconds = 180
	rolloutGraceSeconds = 60
	probeGraceSeconds   = 5
)

// LearnerJob returns the Job of the learner of one attempt: it makes one pod and never another. It has no pod failure
// policy, because with such a policy a Job does not fail while the node of its pod is silent.
func LearnerJob(run *v1alpha1.TrainingRun, attempt int32, linkName string, settings Settings) *batchv1.Job {
	meta := ownedByRun(run, LearnerJobName(run, attempt), merged(userLabels(run), LearnerLabels(run, attempt)))
	meta.Annotations = jobAnnotations(run, map[string]string{
		v1alpha1.AnnotationImage: settings.Image, v1alpha1.AnnotationSettings: learnerSettings(run),
	})
	job := jobOfOnePod(meta, learnerTemplate(run, attempt, linkName, settings))
	job.Spec.PodReplacementPolicy = ptr.To(batchv1.TerminatingOrFailed)
	MountRows(job, run, settings)
	return job
}

// jobOfOnePod returns a Job that makes one pod, and no other after it.
func jobOfOnePod(meta metav1.ObjectMeta, template corev1.PodTemplateSpec) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: meta,
		Spec: batchv1.JobSpec{
			CompletionMode: ptr.To(batchv1.NonIndexedCompletion),
			Completions:    ptr.To[int32](1),
			Parallelism:    ptr.To[int32](1),
			BackoffLimit:   ptr.To[int32](0),
			Template:       template,
		},
	}
}

// RolloutJob returns the Job of the run's workers. It is Indexed, since an Indexed Job replaces each worker whatever
// became of the others, and counts failures for each index. If the run has no workers, the Job is suspended: with 0
// completions it would be complete for good.
func RolloutJob(run *v1alpha1.TrainingRun, attempt int32, linkName string, settings Settings) *batchv1.Job {
	meta := ownedByRun(run, RolloutJobName(run), merged(userLabels(run), RolloutLabels(run)))
	meta.Annotations = jobAnnotations(run, map[string]string{
		v1alpha1.AnnotationTemplate: RolloutTemplateDigest(run),
		v1alpha1.AnnotationRunFile:  RunFileName(run, attempt),
		v1alpha1.AnnotationImage:    settings.Image,
	})
	scale := RolloutScale(run)
	if scale.Suspended {
		meta.Annotations[v1alpha1.AnnotationSuspended] = "true"
	}
	return &batchv1.Job{
		ObjectMeta: meta,
		Spec: batchv1.JobSpec{
			CompletionMode:       ptr.To(batchv1.IndexedCompletion),
			Completions:          ptr.To(scale.Workers),
			Parallelism:          ptr.To(scale.Workers),
			Suspend:              ptr.To(scale.Suspended),
			BackoffLimit:         ptr.To[int32](math.MaxInt32),
			BackoffLimitPerIndex: ptr.To[int32](math.MaxInt32),
			PodReplacementPolicy: ptr.To(batchv1.TerminatingOrFailed),
			Template:             rolloutTemplate(run, attempt, linkName, settings),
		},
	}
}

// Scale is the number of workers of a Job.
type Scale struct {
	// Workers is at least 1.
	Workers   int32
	Suspended bool
}

// RolloutScale is the scale that the run wants.
func RolloutScale(run *v1alpha1.TrainingRun) Scale {
	workers := *run.Spec.Rollouts.Workers
	return Scale{Workers: max(workers, 1), Suspended: workers == 0}
}

// Rescale returns a workers' Job with the scale that the run wants, and whether that changes it. A suspension that
// another controller has set, such as a queue, stays as it is.
func Rescale(run *v1alpha1.TrainingRun, job *batchv1.Job) (*batchv1.Job, bool) {
	scale, changed := RolloutScale(run), job.DeepCopy()
	changed.Spec.Parallelism, changed.Spec.Completions = ptr.To(scale.Workers), ptr.To(scale.Workers)
	switch suspended, own := ptr.Deref(job.Spec.Suspend, false), job.Annotations[v1alpha1.AnnotationSuspended] != ""; {
	case scale.Suspended && !suspended:
		changed.Spec.Suspend = ptr.To(true)
		changed.Annotations = merged(changed.Annotations, map[string]string{v1alpha1.AnnotationSuspended: "true"})
	case !scale.Suspended && own:
		changed.Spec.Suspend = ptr.To(false)
		delete(changed.Annotations, v1alpha1.AnnotationSuspended)
	}
	return changed, !equality.Semantic.DeepEqual(job, changed)
}

// SuspendedByOther reports whether another controller has suspended a Job.
func SuspendedByOther(job *batchv1.Job) bool {
	return job != nil && ptr.Deref(job.Spec.Suspend, false) && job.Annotations[v1alpha1.AnnotationSuspended] == ""
}

// CredentialsOf is the name of the credentials Secret that a Job's pods mount; empty when they mount none.
func CredentialsOf(job *batchv1.Job) string { return credentialsSource(job).SecretName }

// HasManagerToken reports whether a learner's Job mounts a token of the manager's own, which earlier managers did not
// write.
func HasManagerToken(job *batchv1.Job) bool {
	return slices.ContainsFunc(credentialsSource(job).Items,
		func(i corev1.KeyToPath) bool { return i.Key == contract.ManagerTokenKey })
}

// credentialsSource is the Secret that a Job's pods mount as their credentials; the zero value when they mount none.
func credentialsSource(job *batchv1.Job) corev1.SecretVolumeSource {
	for _, v := range job.Spec.Template.Spec.Volumes {
		if v.Name == credentialsVolume && v.Secret != nil {
			return *v.Secret
		}
	}
	return corev1.SecretVolumeSource{}
}

// RolloutTemplateDigest digests the settings of worker pods that a user can change. The manager's own settings are not
// part of it: an upgrade of the operator leaves workers alone until the next attempt.
func RolloutTemplateDigest(run *v1alpha1.TrainingRun) string {
	return templateDigest(struct {
		Pod v1alpha1.PodOverrides
		Key *ref.SecretKey

		Connection *connection   `json:",omitempty"`
		Endpoint   *ref.Endpoint `json:",omitempty"`

		TokenizerToken *ref.SecretKey `json:",omitempty"`
	}{PodOverrides(run, v1alpha1.TargetWorkers), run.Spec.Tinker.APIKeySecretKeyRef, connectionOf(run.Spec.Tinker),
		run.Spec.Tinker.EndpointRef, tokenizerToken(run)})
}

// ProbeTemplateDigest digests the settings of a probe's pod that a user can change.
func ProbeTemplateDigest(env *v1alpha1.RewardEnvironment) string { return templateDigest(env.Spec.Pod) }

func templateDigest(settings any) string {
	sum := sha256.Sum256(encode(settings))
	return hex.EncodeToString(sum[:8])
}

// ProbeJob returns the Job that probes a RewardEnvironment. try counts from 1. The Job has the environment's labels, so
// that Kueue can queue it.
func ProbeJob(env *v1alpha1.RewardEnvironment, definitionDigest string, try int32, settings Settings) *batchv1.Job {
	name := ProbeName(env, definitionDigest, try)
	labels := probeLabels(env, definitionDigest, try)
	meta := owned(env, "RewardEnvironment", name, merged(inheritable(env.Labels), labels))
	meta.Annotations = map[string]string{v1alpha1.AnnotationTemplate: ProbeTemplateDigest(env)}
	job := jobOfOnePod(meta, probeTemplate(env, name, labels, settings))
	job.Spec.ActiveDeadlineSeconds = ptr.To[int64](probeDeadlineSeconds)
	pins := Pins{env.Name: {Definition: Definition(env.Spec)}}
	if data := pins.Data(); data != "" {
		job.Spec.ActiveDeadlineSeconds = ptr.To[int64](probeDataDeadlineSeconds)
		MountData(job, data, env.Spec.Pod, settings)
	}
	if err := RunServers(job, pins.Servers(), "", settings); err != nil {
		// It is the output of Servers.
		panic("desired: running the servers of a probe: " + err.Error())
	}
	return job
}

// ProbeConfig is the ConfigMap that a probe reads; definition is contract.EncodeDefinition's.
func ProbeConfig(env *v1alpha1.RewardEnvironment, definition []byte, definitionDigest string,
	try int32) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: owned(env, "RewardEnvironment", ProbeName(env, definitionDigest, try),
			probeLabels(env, definitionDigest, try)),
		Immutable: ptr.To(true),
		Data:      map[string]string{definitionFile: string(definition)},
	}
}

func template(labels map[string]string, spec corev1.PodSpec) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}
}
