// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package rewardenvironment probes each RewardEnvironment by a Job of its own. The result of the probe goes into the
// status, which runs pin. The package itself never loads data and never plays an episode.
package rewardenvironment

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/namespacelease"
	"github.com/tinker-operator/tinker-operator/internal/controller/objectmap"
	"github.com/tinker-operator/tinker-operator/internal/controller/record"
	"github.com/tinker-operator/tinker-operator/internal/controller/refusal"
	"github.com/tinker-operator/tinker-operator/internal/controller/warmpool"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// Reconciler reconciles RewardEnvironments.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server.
	Live     client.Reader
	Recorder events.EventRecorder
	// Leases say whether this manager acts in a namespace.
	Leases *namespacelease.Leases
	// Pools are the warm pools of programs; nil if the manager may not use any.
	Pools    *warmpool.Link
	Settings desired.Settings
	Now      func() time.Time

	refusals *refusal.Memory
	probes   *objectmap.Map[probes]
}

// New completes a Reconciler.
func New(r Reconciler) *Reconciler {
	r.refusals, r.probes = &refusal.Memory{}, &objectmap.Map[probes]{}
	return &r
}

// +kubebuilder:rbac:groups=rl.tinker-operator.dev,resources=rewardenvironments,verbs=get;list;watch
// +kubebuilder:rbac:groups=rl.tinker-operator.dev,resources=rewardenvironments/status,verbs=patch
// +kubebuilder:rbac:groups=rl.tinker-operator.dev,resources=rewardenvironments/finalizers,verbs=update
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;create;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=list

// Reconcile makes the probe of one environment, once for each definition, and again after a failure that may pass.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	env := &v1alpha1.RewardEnvironment{}
	if err := r.Client.Get(ctx, request.NamespacedName, env); apierrors.IsNotFound(err) {
		r.refusals.Forget(request.NamespacedName)
		r.probes.Forget(request.NamespacedName)
		r.Leases.Forget(request.NamespacedName)
		return ctrl.Result{}, nil
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if env.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	if wait, err := r.Leases.Wait(ctx, env); wait > 0 || err != nil {
		return ctrl.Result{RequeueAfter: wait}, err
	}
	seen, err := r.observe(ctx, env)
	if err != nil {
		return ctrl.Result{}, err
	}
	p := makePlan(env, seen, r.Now())
	if err := r.writeStatus(ctx, env, computeStatus(env, p, r.Now())); err != nil {
		if apierrors.IsConflict(err) {
			return ctrl.Result{RequeueAfter: time.Second}, nil // This view of the object was old; a newer one is coming.
		}
		return ctrl.Result{}, err
	}
	if p.probe > 0 {
		err := r.startProbe(ctx, seen, p.probe)
		if r.refusals.Record(env, v1alpha1.RoleProbe, desired.ProbeName(env, seen.digest, p.probe), err, r.Now()) {
			return ctrl.Result{RequeueAfter: time.Second}, nil // The status then reports it.
		} else if err != nil {
			return ctrl.Result{}, err
		}
		newest := r.probes.Get(env)
		newest.started = r.Now()
		r.probes.Set(env, newest)
	}
	if seen.readsOthers() && (p.requeue == 0 || p.requeue > dataInterval) {
		p.requeue = dataInterval
	}
	return ctrl.Result{RequeueAfter: p.requeue}, r.apply(ctx, env, p)
}

// startProbe makes a probe's Job and the objects that it reads.
func (r *Reconciler) startProbe(ctx context.Context, seen observed, try int32) error {
	definition, err := contract.EncodeDefinition(seen.definition)
	if err != nil {
		return err
	}
	config := desired.ProbeConfig(seen.filled, definition, seen.digest, try)
	if err := client.IgnoreAlreadyExists(r.Client.Create(ctx, config)); err != nil {
		return fmt.Errorf("creating probe definition: %w", err)
	}
	job := desired.ProbeJob(seen.filled, seen.digest, try, r.Settings)
	if err := client.IgnoreAlreadyExists(r.Client.Create(ctx, job)); err != nil {
		return fmt.Errorf("creating probe job: %w", err)
	}
	return nil
}

// apply deletes probes of an environment that are no longer needed, each once.
func (r *Reconciler) apply(ctx context.Context, env *v1alpha1.RewardEnvironment, p plan) error {
	if len(p.deletes) == 0 {
		return nil
	}
	earlier := r.probes.Get(env)
	var deleted []types.UID
	for _, job := range p.deletes {
		if !slices.Contains(earlier.deleted, job.UID) {
			if err := r.deleteProbe(ctx, job); err != nil {
				return err
			}
		}
		deleted = append(deleted, job.UID)
	}
	earlier.deleted = deleted
	r.probes.Set(env, earlier)
	return nil
}

// deleteProbe deletes a probe's Job, and the ConfigMap of its name.
func (r *Reconciler) deleteProbe(ctx context.Context, job *batchv1.Job) error {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name}}
	if err := client.IgnoreNotFound(r.Client.Delete(ctx, config)); err != nil {
		return fmt.Errorf("deleting probe definition: %w", err)
	}
	err := r.Client.Delete(ctx, job,
		client.Preconditions{UID: ptr.To(job.UID)},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err := client.IgnoreNotFound(err); err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting probe job: %w", err)
	}
	return nil
}

// writeStatus writes the status if it has changed, and records an event if the condition has.
func (r *Reconciler) writeStatus(ctx context.Context, env *v1alpha1.RewardEnvironment,
	next v1alpha1.RewardEnvironmentStatus) error {
	if equality.Semantic.DeepEqual(env.Status, next) {
		return nil
	}
	before := env.DeepCopy()
	env.Status = next
	if err := record.Status(ctx, r.Client, before, env); err != nil {
		return err
	}
	record.Events(r.Recorder, env, newEvents(&before.Status, &env.Status)...)
	return nil
}
