// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package trainingrun runs a TrainingRun: it makes attempts one after the other until a learner reports that the last
// step is committed. It never calls the Tinker API and never reads a Secret; it knows the training itself only by the
// heartbeats and verdicts of learners.
//
// A reconcile reads the cluster once (observe), decides without a side effect (makePlan), writes the
// status, and only then executes the plan: an attempt is in the status before its Job exists, so that
// no manager, however late, makes a second Job of one attempt.
package trainingrun

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/controller/kueue"
	"github.com/tinker-operator/tinker-operator/internal/controller/namespacelease"
	"github.com/tinker-operator/tinker-operator/internal/controller/objectmap"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/controller/poller"
	"github.com/tinker-operator/tinker-operator/internal/controller/record"
	"github.com/tinker-operator/tinker-operator/internal/controller/refusal"
	"github.com/tinker-operator/tinker-operator/internal/controller/warmpool"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// Reconciler reconciles TrainingRuns. New makes one.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Endpoints reads TinkerEndpoints; nil for a manager that serves none.
	Endpoints client.Reader
	// WatchEndpoints says that the manager may watch TinkerEndpoints.
	WatchEndpoints bool
	// Fixed are the labels by which budgets of TinkerEndpoints may select runs.
	Fixed endpoint.FixedLabels
	// Poller polls the learners.
	Poller   *poller.Poller
	Recorder events.EventRecorder
	// Kueue is the link to Kueue for runs that name a queue; nil if the manager does not use Kueue.
	Kueue *kueue.Link
	// Pools are the warm pools of programs; nil for a manager that may use none.
	Pools *warmpool.Link
	// Leases say whether this manager acts in a namespace.
	Leases *namespacelease.Leases
	// ManagerKey is the key from which the credentials of runs derive.
	ManagerKey []byte
	Settings   desired.Settings
	Now        func() time.Time
	// Fault is a test hook, nil in production: an error from it ends the reconcile at the named point, as a
	// crash of the manager there would.
	Fault func(point string) error

	memory     *memory
	refusals   *refusal.Memory
	observer   *observe.Observer
	history    *record.HistoryWriter
	namespaces *namespaces
	checks     *objectmap.Map[nextCheck]
}

// New completes a Reconciler.
func New(r Reconciler) *Reconciler {
	r.memory, r.refusals, r.namespaces, r.checks = &memory{}, &refusal.Memory{}, &namespaces{}, &objectmap.Map[nextCheck]{}
	r.observer = observe.New(observe.Observer{Client: r.Client, Live: r.Live, Endpoints: r.Endpoints,
		Fixed: r.Fixed, Namespace: r.Settings.Namespace, Poller: r.Poller, Refusals: r.refusals, Now: r.Now,
		Deployments: r.Settings.SharedServers, Pools: r.Pools})
	r.history = record.NewHistoryWriter(r.Client, r.Live, r.Now)
	return &r
}

// +kubebuilder:rbac:groups=rl.tinker-operator.dev,resources=trainingruns,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=rl.tinker-operator.dev,resources=trainingruns/status,verbs=patch
// +kubebuilder:rbac:groups=rl.tinker-operator.dev,resources=trainingruns/finalizers,verbs=update
// +kubebuilder:rbac:groups=rl.tinker-operator.dev,resources=rewardenvironments,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;create;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=create
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;list;patch

// Reconcile brings one run one step closer to its spec.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	run, err := observe.Find(ctx, r.Client, request.Namespace, request.Name, &v1alpha1.TrainingRun{})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading run: %w", err)
	}
	if !isOurs(run) {
		// Owner references delete the run's objects with it.
		r.forget(request.NamespacedName)
		r.Leases.Forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	if wait, err := r.Leases.Wait(ctx, run); wait > 0 || err != nil {
		r.forget(request.NamespacedName) // Another manager may change everything.
		return ctrl.Result{RequeueAfter: wait}, err
	}
	if r.memory.stale(run) {
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	if err := r.detach(ctx, run); apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: time.Second}, nil
	} else if err != nil {
		return ctrl.Result{}, err
	}
	now := r.Now() // The time that reading takes does not count toward a deadline.
	seen, err := r.observe(ctx, run)
	if err != nil {
		return ctrl.Result{}, err
	}
	p := makePlan(run, seen, now)
	if endsByDeadline(run, seen, p) {
		if err := r.observer.Confirm(ctx, run, &seen); err != nil {
			return ctrl.Result{}, err
		}
		p = makePlan(run, seen, now)
	}
	p = r.withNamespace(ctx, run, seen, p)
	// If the attempt cannot be prepared now, the plan goes on without it, and its status is still written.
	var unprepared error
	if p.start > 0 {
		p, unprepared = r.prepare(ctx, run, seen, p)
	} else {
		p.unusable = r.checkNext(ctx, run, seen, p)
	}
	if p, err = r.withQueue(ctx, run, &seen, p); err != nil {
		return ctrl.Result{}, err
	}
	wait, err := r.execute(ctx, run, seen, p)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: time.Second}, nil // This view of the run was old; a newer one is coming.
	}
	return ctrl.Result{RequeueAfter: wait}, errors.Join(unprepared, err)
}

// isOurs reports whether a run exists, and this operator reconciles it.
func isOurs(run *v1alpha1.TrainingRun) bool {
	return run != nil && run.DeletionTimestamp == nil &&
		(run.Spec.ManagedBy == "" || run.Spec.ManagedBy == v1alpha1.ManagedBy)
}

// observe reads the state of a run in the cluster, and Kueue's state of it.
func (r *Reconciler) observe(ctx context.Context, run *v1alpha1.TrainingRun) (observe.State, error) {
	seen, err := r.observer.Run(ctx, run)
	if err != nil {
		return observe.State{}, err
	}
	seen.Credentials = r.credentialsName(run)
	seen.Findings, seen.Diagnosed = r.history.Findings(run)
	return seen, r.observeQueue(ctx, run, &seen)
}

// forget drops the state of a run that no longer exists or belongs to another manager.
func (r *Reconciler) forget(run types.NamespacedName) {
	r.Poller.Track(run, nil)
	r.memory.Forget(run)
	r.refusals.Forget(run)
	r.observer.Forget(run)
	r.history.Forget(run)
	r.checks.Forget(run)
}

// execute writes the status first, then acts, and returns when to reconcile again.
func (r *Reconciler) execute(ctx context.Context, run *v1alpha1.TrainingRun, seen observe.State,
	p plan) (time.Duration, error) {
	next := computeStatus(run, seen, p, r.Now())
	wait, err := r.writeStatus(ctx, run, seen.Learners[status.NewestAttempt(run)].Pod, next)
	if err != nil {
		return 0, err
	}
	asked := targets(run, seen, p.desired)
	unwritten := r.recordHistory(ctx, run, seen, asked)
	r.Poller.Track(client.ObjectKeyFromObject(run), asked)
	refused, err := r.apply(ctx, run, seen, p)
	if err != nil {
		return 0, err
	}
	queued, err := r.tellQueue(ctx, run, seen, p)
	if err != nil {
		return 0, err
	}
	return sooner(sooner(sooner(p.requeue, wait), unwritten), sooner(sooner(seen.LookAgain, refused), queued)), nil
}

// recordHistory stores the steps that the newest attempt's learner has reported, and makes the next heartbeat say which
// of them are stored. It returns when to store the rest.
func (r *Reconciler) recordHistory(ctx context.Context, run *v1alpha1.TrainingRun, seen observe.State,
	asked []poller.Target) time.Duration {
	pod := seen.Learners[status.NewestAttempt(run)].Pod
	if pod == nil {
		return 0
	}
	since, _ := learnerRunning(pod)
	wait := r.history.Write(ctx, run, pod.UID, seen.Heartbeat.Reply, record.HistoryEvery(since, r.Now()))
	for i := range asked {
		if asked[i].Pod == pod.UID {
			asked[i].Request.HistoryVersion = contract.HistoryVersion
			asked[i].Request.KnownRecords = r.history.Known(ctx, run, pod.UID)
		}
	}
	return wait
}

// sooner returns the shorter of two waits; 0 means no wait.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

func (r *Reconciler) fault(point string) error {
	if r.Fault == nil {
		return nil
	}
	return r.Fault(point)
}
