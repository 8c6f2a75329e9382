// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/poller"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// rolloutRestartDelay is how long a workers' Job that ended by itself is left before another is made.
const rolloutRestartDelay = time.Minute

// reportRefusal is when to reconcile a run again, so that its status has what the API server has just refused.
const reportRefusal = time.Second

// apply executes a plan after its status is written. What the API server refuses is no error: it returns when to
// reconcile again, and the status reports it.
func (r *Reconciler) apply(ctx context.Context, run *v1alpha1.TrainingRun, seen observed, p plan) (time.Duration, error) {
	propagation := metav1.DeletePropagationBackground
	if p.foreground {
		propagation = metav1.DeletePropagationForeground
	}
	for _, object := range p.deletes {
		if err := r.delete(ctx, object, propagation); err != nil {
			return 0, fmt.Errorf("deleting %s: %w", object.GetName(), err)
		}
	}
	var again time.Duration
	if p.start > 0 {
		err := r.startAttempt(ctx, run, p)
		if r.refusals.Record(run, v1alpha1.RoleLearner, desired.LearnerJobName(run, p.start), err, r.Now()) {
			again = reportRefusal
		} else if err != nil {
			return 0, err
		}
	}
	if p.workers || p.start > 0 {
		wait, err := r.reconcileWorkers(ctx, run, seen)
		if err != nil {
			return 0, err
		}
		again = sooner(again, wait)
	}
	if p.start > 2 {
		return again, r.pruneFiles(ctx, run, seen, p.start)
	}
	if p.expire {
		return again, r.expire(ctx, run)
	}
	return again, nil
}

// reconcileWorkers makes the workers' Service and Job as the spec has them, unless they were refused a moment ago.
func (r *Reconciler) reconcileWorkers(ctx context.Context, run *v1alpha1.TrainingRun, seen observed) (time.Duration, error) {
	if wait, again := seen.refusedWorkers.Wait(run.Generation, r.Now()); wait > 0 || !again {
		return wait, nil
	}
	err := r.reconcileService(ctx, run, seen)
	if err == nil {
		err = r.reconcileRolloutJob(ctx, run, seen)
	}
	if r.refusals.Record(run, v1alpha1.RoleRollout, desired.RolloutJobName(run), err, r.Now()) {
		return reportRefusal, nil
	}
	return 0, err
}

// reconcileService leads workers to the newest attempt.
func (r *Reconciler) reconcileService(ctx context.Context, run *v1alpha1.TrainingRun, seen observed) error {
	want := desired.Service(run, newestAttempt(run))
	if seen.service == nil {
		if err := client.IgnoreAlreadyExists(r.Client.Create(ctx, want)); err != nil {
			return fmt.Errorf("creating service: %w", err)
		}
		return nil
	}
	if maps.Equal(seen.service.Spec.Selector, want.Spec.Selector) {
		return nil
	}
	changed := seen.service.DeepCopy()
	changed.Spec.Selector = want.Spec.Selector
	if err := r.Client.Patch(ctx, changed, client.MergeFrom(seen.service)); err != nil {
		return fmt.Errorf("moving service: %w", err)
	}
	return nil
}

// reconcileRolloutJob makes the workers' Job, scales it, or replaces it when what a user can change of its pods
// has changed.
func (r *Reconciler) reconcileRolloutJob(ctx context.Context, run *v1alpha1.TrainingRun, seen observed) error {
	job := seen.rollout
	switch {
	case job == nil:
		suffix := contract.SecretSuffix(r.ManagerKey, string(run.UID))
		made := desired.RolloutJob(run, newestAttempt(run), desired.CredentialsName(run, suffix), r.Settings)
		if err := client.IgnoreAlreadyExists(r.Client.Create(ctx, made)); err != nil {
			return fmt.Errorf("creating rollout job: %w", err)
		}
		return nil
	case job.DeletionTimestamp != nil:
		return nil
	case job.Annotations[v1alpha1.AnnotationTemplate] != desired.RolloutTemplateDigest(run), rolloutJobEnded(job) && r.Now().Sub(job.CreationTimestamp.Time) > rolloutRestartDelay:
		return r.delete(ctx, job, metav1.DeletePropagationBackground)
	case rolloutJobEnded(job):
		return nil
	}
	changed, differs := desired.Rescale(run, job)
	if !differs {
		return nil
	}
	if err := r.Client.Patch(ctx, changed, client.MergeFrom(job)); err != nil {
		return fmt.Errorf("scaling rollout job: %w", err)
	}
	return nil
}

// rolloutJobEnded says that a workers' Job has ended by itself, which none should while its run goes on.
func rolloutJobEnded(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed)
	})
}

// delete deletes the very object that was seen, and its pods with it; that it no longer exists is fine.
func (r *Reconciler) delete(ctx context.Context, object client.Object, propagation metav1.DeletionPropagation) error {
	err := r.Client.Delete(ctx, object, client.Preconditions{UID: ptr.To(object.GetUID())}, client.PropagationPolicy(propagation))
	if apierrors.IsConflict(err) {
		return nil // Another object has the name by now.
	}
	return client.IgnoreNotFound(err)
}

// expire deletes a run whose time after its end is over, unless a fresh read shows that it changed.
func (r *Reconciler) expire(ctx context.Context, run *v1alpha1.TrainingRun) error {
	now, err := find(ctx, r.Live, run.Namespace, run.Name, &v1alpha1.TrainingRun{})
	if err != nil {
		return fmt.Errorf("looking up run: %w", err)
	}
	if now == nil || now.UID != run.UID || now.Spec.TTLSecondsAfterFinished == nil || now.Status.CompletionTime == nil {
		return nil
	}
	if now.Default(); retried(now) {
		return nil
	}
	if left := now.Status.CompletionTime.Add(seconds(*now.Spec.TTLSecondsAfterFinished)).Sub(r.Now()); left > 0 {
		return nil
	}
	err = r.Client.Delete(ctx, now,
		client.Preconditions{UID: &now.UID, ResourceVersion: &now.ResourceVersion},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err := client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("deleting finished run: %w", err)
	}
	return nil
}

// targets are the learners to ask, those of earlier attempts too: the request shows them that there is a newer one.
func targets(run *v1alpha1.TrainingRun, seen observed, want contract.Desired) []poller.Target {
	newest := newestAttempt(run)
	var all []poller.Target
	for _, attempt := range slices.Sorted(maps.Keys(seen.learners)) {
		pod := seen.learners[attempt].pod
		if _, running := learnerRunning(pod); !running || pod.Status.PodIP == "" {
			continue
		}
		all = append(all, poller.Target{
			Pod:     pod.UID,
			Address: net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(desired.HeartbeatPort)),
			Request: contract.HeartbeatRequest{RunUID: string(run.UID), Attempt: newest, Desired: want},
		})
	}
	return all
}
