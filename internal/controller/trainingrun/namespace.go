// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/controller/workers"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get

// namespaceTerminating is the message of a run whose namespace is being deleted.
const namespaceTerminating = "The namespace is being deleted: no further attempt is made, and the run's Jobs " +
	"are deleted."

// namespaces has the time at which each namespace was last found not to be terminating. Its zero value is ready.
type namespaces struct {
	mu     sync.Mutex
	active map[string]time.Time
}

// withNamespace returns the plan for a run whose namespace is being deleted, if the observation may be a result of the
// deletion.
func (r *Reconciler) withNamespace(ctx context.Context, run *v1alpha1.TrainingRun, seen observe.State, p plan) plan {
	if refusedByNamespace(seen) {
		return p.withoutNamespace(seen)
	}
	if !losesPods(run, seen, p) {
		return p
	}
	terminating, again := r.namespaces.terminating(ctx, r.Live, run.Namespace, p.start > 0, r.Now())
	if terminating {
		return p.withoutNamespace(seen)
	}
	p.requeue = sooner(p.requeue, again)
	return p
}

// refusedByNamespace reports whether the API server refused an object of the run because its namespace is being
// deleted.
func refusedByNamespace(seen observe.State) bool {
	return seen.Refused.Code == problem.NamespaceTerminating ||
		seen.RefusedWorkers.Code == problem.NamespaceTerminating
}

// losesPods reports whether an attempt is to start, or pods that the run should have are missing or are being deleted.
// The deletion of a namespace deletes pods before everything else.
func losesPods(run *v1alpha1.TrainingRun, seen observe.State, p plan) bool {
	if p.start > 0 || p.ending != nil {
		return true
	}
	if job := seen.Rollout; job != nil && !ptr.Deref(job.Spec.Suspend, false) &&
		seen.WorkersActive() < desired.RolloutScale(run).Workers {
		return true
	}
	if status.AttemptEnded(run) {
		return false
	}
	l := seen.Learners[status.NewestAttempt(run)]
	return l.Job != nil && (l.Pod == nil || l.Pod.DeletionTimestamp != nil)
}

// terminating reports whether a namespace is being deleted, and otherwise when to look again. It does not look again at
// a namespace that it has just looked at, unless now is set.
func (n *namespaces) terminating(ctx context.Context, live client.Reader, name string, now bool,
	at time.Time) (bool, time.Duration) {
	n.mu.Lock()
	left := n.active[name].Add(observe.LookInterval).Sub(at)
	n.mu.Unlock()
	if !now && left > 0 {
		return false, left
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := live.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if apierrors.IsNotFound(err) || err == nil && namespace.DeletionTimestamp != nil {
		return true, 0
	}
	if err != nil {
		// If the namespace is being deleted, the API server refuses to create objects, which has the same effect.
		ctrl.LoggerFrom(ctx).V(1).Info("reading namespace", "err", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.active == nil {
		n.active = map[string]time.Time{}
	}
	n.active[name] = at
	return false, observe.LookInterval
}

// withoutNamespace returns a plan that starts no attempt and deletes the run's Jobs. The Job controller keeps a worker
// that has failed until its replacement exists, which a terminating namespace does not admit; without its Job, the pod
// is deleted.
func (p plan) withoutNamespace(seen observe.State) plan {
	p.terminating, p.requeue = true, maxRequeue
	p.start, p.file, p.pins, p.blocked, p.backingOff = 0, nil, nil, nil, false
	p.workers, p.servers, p.foreground = false, workers.KeepServers, false
	p.deletes = unlessDeleted(seen.Rollout)
	for _, attempt := range slices.Sorted(maps.Keys(seen.Learners)) {
		p.deletes = append(p.deletes, learnerJob(seen, attempt)...)
	}
	return p
}
