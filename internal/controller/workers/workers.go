// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package workers keeps the Job and the Service of a run's workers in line with the spec and the newest attempt. It
// also keeps the Deployments of shared environment servers, which a run has once instead of beside each worker, and of
// programs that have pods of their own.
package workers

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/podstate"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// restartDelay is the minimum age at which a Job whose pods cannot work is replaced.
const restartDelay = time.Minute

// Observed is the observed state of a run's workers.
type Observed struct {
	// Attempt is the number of the newest attempt.
	Attempt int32
	// Learner is the Job of the newest attempt; nil if it does not exist, or when the attempt has ended.
	Learner *batchv1.Job
	// Job and Service are the workers'; nil if they do not exist.
	Job     *batchv1.Job
	Service *corev1.Service
	// VersionRefused says that workers ended because they are of another version than the run.
	VersionRefused bool
	// ReplaceAt is the time at which the Job is replaced because its workers await a repair: the result of the function
	// ReplaceAt.
	ReplaceAt time.Time
	// KeyReplaced says that the endpoint refused the API key with which the workers began, and accepts the learner's key.
	KeyReplaced bool
	// Credentials is the name of the Secret that the manager gives to the next learner.
	Credentials string
	// Data lists the workers' mounts for the data sets of the newest attempt: desired.Pins.Data.
	Data string
	// SpecDigest is the digest of the newest attempt; empty if its Job does not exist or does not have it. Workers only
	// talk to a learner with the same digest.
	SpecDigest string
	// Servers lists the sidecars of the newest attempt's workers: desired.Pins.Servers.
	Servers string
	// AwaitsServers says that a shared server is being replaced. Workers that began now might open sessions at the former
	// server.
	AwaitsServers bool
}

// CannotWork reports whether the Job has ended by itself, its workers await a repair that the workers of a new Job
// would notice sooner, or its workers have another version than the run. That version does not count if the spec names
// the image, since a new Job would have the same image.
func (o Observed) CannotWork(run *v1alpha1.TrainingRun) bool {
	return o.Job != nil && o.Job.DeletionTimestamp == nil &&
		(podstate.JobEnd(o.Job) != nil || !o.ReplaceAt.IsZero() || o.VersionRefused &&
			desired.PodOverrides(run, v1alpha1.TargetWorkers).Image == "")
}

// RetryIn returns the time until a Job whose pods cannot work is replaced; 0 or less once that is due.
func (o Observed) RetryIn(now time.Time) time.Duration {
	if !o.ReplaceAt.IsZero() {
		return o.ReplaceAt.Sub(now)
	}
	return o.Job.CreationTimestamp.Add(restartDelay).Sub(now)
}

// outdated reports whether the workers are of another build, or have other credentials, than the learner that they are
// to work for. Only a learner of the manager's own image counts: the manager cannot make workers with another image.
func (o Observed) outdated(image string) bool {
	if o.Learner == nil {
		return false
	}
	if o.Learner.Annotations[v1alpha1.AnnotationImage] == image && o.Job.Annotations[v1alpha1.AnnotationImage] != image {
		return true
	}
	given := desired.CredentialsOf(o.Learner)
	return given != "" && desired.CredentialsOf(o.Job) != given
}

// action is an action on the Job.
type action int

const (
	keep action = iota
	create
	scale
	replace
)

// actionOf decides the action on the Job. The Job is replaced when the user's settings for its pods have changed, when
// the newest attempt has begun with another image, other credentials, other data or other settings, and, after a delay,
// when it cannot work.
func actionOf(run *v1alpha1.TrainingRun, o Observed, image string, now time.Time) action {
	switch {
	case o.Job == nil && o.AwaitsServers:
		return keep // An event of the server's Deployment causes another reconcile.
	case o.Job == nil:
		return create
	case slices.Contains(o.Job.Finalizers, metav1.FinalizerDeleteDependents):
		return replace // It was suspended. Its pods may wait for a node that never answers.
	case o.Job.DeletionTimestamp != nil:
		return keep
	case o.Job.Annotations[v1alpha1.AnnotationTemplate] != desired.RolloutTemplateDigest(run), o.outdated(image),
		o.KeyReplaced,
		desired.DataOf(o.Job) != o.Data, desired.ServersOf(o.Job) != o.Servers,
		o.SpecDigest != "" && o.Job.Annotations[v1alpha1.AnnotationSpecDigest] != o.SpecDigest:
		return replace
	case o.CannotWork(run) && o.RetryIn(now) <= 0:
		return replace
	case podstate.JobEnd(o.Job) != nil: // No Job should end while its run is in progress.
		return keep
	}
	if _, differs := desired.Rescale(run, o.Job); differs {
		return scale
	}
	return keep
}

// Reconciler writes the Job and the Service.
type Reconciler struct {
	Client   client.Client
	Settings desired.Settings
	// Delete deletes the very object that was observed, and its pods.
	Delete func(ctx context.Context, object client.Object, propagation metav1.DeletionPropagation) error
	// Place adds the placement of a queue's admission to the template of a new Job. If it is nil, nothing is added.
	Place func(ctx context.Context, template *corev1.PodTemplateSpec) error
}

// Reconcile points the Service at the learner of the newest attempt, then creates, scales or deletes the workers' Job.
func (r Reconciler) Reconcile(ctx context.Context, run *v1alpha1.TrainingRun, o Observed, now time.Time) error {
	if err := r.reconcileService(ctx, run, o); err != nil {
		return err
	}
	switch actionOf(run, o, r.Settings.Image, now) {
	case create:
		return r.createJob(ctx, run, o)
	case replace:
		return r.Delete(ctx, o.Job, metav1.DeletePropagationBackground)
	case scale:
		return r.scaleJob(ctx, run, o.Job)
	default:
		return nil
	}
}

func (r Reconciler) reconcileService(ctx context.Context, run *v1alpha1.TrainingRun, o Observed) error {
	want := desired.Service(run, o.Attempt)
	if o.Service == nil {
		if err := client.IgnoreAlreadyExists(r.Client.Create(ctx, want)); err != nil {
			return fmt.Errorf("creating service: %w", err)
		}
		return nil
	}
	if maps.Equal(o.Service.Spec.Selector, want.Spec.Selector) {
		return nil
	}
	changed := o.Service.DeepCopy()
	changed.Spec.Selector = want.Spec.Selector
	if err := r.Client.Patch(ctx, changed, client.MergeFrom(o.Service)); err != nil {
		return fmt.Errorf("moving service: %w", err)
	}
	return nil
}

// createJob makes workers with the credentials of the newest attempt's learner, or else those of the next learner.
func (r Reconciler) createJob(ctx context.Context, run *v1alpha1.TrainingRun, o Observed) error {
	credentials := o.Credentials
	if o.Learner != nil {
		credentials = cmp.Or(desired.CredentialsOf(o.Learner), credentials)
	}
	job := desired.RolloutJob(run, o.Attempt, credentials, r.Settings)
	if o.SpecDigest != "" {
		job.Annotations[v1alpha1.AnnotationSpecDigest] = o.SpecDigest
	}
	desired.MountData(job, o.Data, desired.PodOverrides(run, v1alpha1.TargetWorkers), r.Settings)
	if err := desired.RunServers(job, o.Servers, desired.ServiceName(run), r.Settings); err != nil {
		return err
	}
	if r.Place != nil {
		if err := r.Place(ctx, &job.Spec.Template); err != nil {
			return err
		}
	}
	if err := client.IgnoreAlreadyExists(r.Client.Create(ctx, job)); err != nil {
		return fmt.Errorf("creating rollout job: %w", err)
	}
	return nil
}

func (r Reconciler) scaleJob(ctx context.Context, run *v1alpha1.TrainingRun, job *batchv1.Job) error {
	changed, _ := desired.Rescale(run, job)
	if err := r.Client.Patch(ctx, changed, client.MergeFrom(job)); err != nil {
		return fmt.Errorf("scaling rollout job: %w", err)
	}
	return nil
}
