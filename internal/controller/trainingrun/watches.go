// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/controller/record"
	"github.com/tinker-operator/tinker-operator/internal/controller/watchdog"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// Indexes of runs by the objects that they refer to.
const (
	indexEnvironment = "environments"
	indexSource      = "source"
	indexEndpoint    = "endpoint"
)

// SetupWithManager registers the Reconciler with a manager, for every object that concerns a run. dog watches its
// reconciles.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, dog *watchdog.Watchdog) error {
	indexes := map[string]client.IndexerFunc{
		indexEndpoint: func(o client.Object) []string {
			if named := o.(*v1alpha1.TrainingRun).Spec.Tinker.EndpointRef; named != nil {
				return []string{named.Name}
			}
			return nil
		},
		indexEnvironment: func(o client.Object) []string { return desired.References(o.(*v1alpha1.TrainingRun)) },
		indexSource: func(o client.Object) []string {
			if name := observe.SourceName(o.(*v1alpha1.TrainingRun)); name != "" {
				return []string{name}
			}
			return nil
		},
	}
	for field, values := range indexes {
		if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.TrainingRun{}, field, values); err != nil {
			return fmt.Errorf("indexing runs by %s: %w", field, err)
		}
	}
	builder := ctrl.NewControllerManagedBy(mgr)
	if r.Settings.SharedServers {
		builder = builder.Owns(&appsv1.Deployment{}).Owns(&networkingv1.NetworkPolicy{})
	}
	if r.WatchEndpoints {
		builder = builder.Watches(&v1alpha1.TinkerEndpoint{},
			handler.EnqueueRequestsFromMapFunc(r.referring(indexEndpoint)))
	}
	c, err := builder.
		Named("trainingrun").
		For(&v1alpha1.TrainingRun{}).
		Owns(&batchv1.Job{}).
		Owns(&corev1.Service{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(runOfPod)).
		Watches(&v1alpha1.RewardEnvironment{}, handler.EnqueueRequestsFromMapFunc(r.referring(indexEnvironment))).
		Watches(&v1alpha1.TrainingRun{}, handler.EnqueueRequestsFromMapFunc(r.referring(indexSource))).
		WatchesRawSource(source.Channel(r.Poller.Events(), &handler.EnqueueRequestForObject{})).
		// With a priority queue, the runs that a manager finds at its start would wait for as long as there are heartbeats.
		WithOptions(controller.Options{MaxConcurrentReconciles: 4, RateLimiter: record.RetryRates(),
			UsePriorityQueue: new(false)}).
		Build(dog.Watch("trainingrun", r))
	if err != nil {
		return fmt.Errorf("setting up trainingrun: %w", err)
	}
	if r.Kueue != nil {
		r.Kueue.Watch(c)
	}
	if r.Pools != nil {
		r.Pools.Watch(c)
	}
	return nil
}

func runOfPod(_ context.Context, pod client.Object) []reconcile.Request {
	name := pod.GetLabels()[v1alpha1.LabelRun]
	if name == "" || pod.GetLabels()[v1alpha1.LabelRole] != v1alpha1.RoleLearner {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: name}}}
}

// referring returns the function that maps an object to the unfinished runs that refer to it, by an index.
func (r *Reconciler) referring(index string) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []reconcile.Request {
		var runs v1alpha1.TrainingRunList
		err := r.Client.List(ctx, &runs, client.InNamespace(object.GetNamespace()),
			client.MatchingFields{index: object.GetName()})
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "listing runs by what they refer to", "index", index)
			return nil
		}
		var requests []reconcile.Request
		for i := range runs.Items {
			if !status.RunFinished(&runs.Items[i]) {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&runs.Items[i])})
			}
		}
		return requests
	}
}
