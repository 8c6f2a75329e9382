// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkerendpoint

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/record"
	"github.com/tinker-operator/tinker-operator/internal/controller/watchdog"
)

// SetupWithManager registers the Reconciler with a manager, for changes of endpoints and of their runs. dog watches its
// reconciles. A manager that may only get endpoints by name looks at them every lookInterval.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, dog *watchdog.Watchdog) error {
	changed := builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{},
		predicate.LabelChangedPredicate{}))
	built := ctrl.NewControllerManagedBy(mgr).
		Named("tinkerendpoint").
		Watches(&v1alpha1.TrainingRun{}, handler.EnqueueRequestsFromMapFunc(r.endpointOfRun), changed)
	if len(r.Names) == 0 {
		built = built.Watches(&v1alpha1.TinkerEndpoint{}, &handler.EnqueueRequestForObject{},
			builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	} else {
		looks := make(chan event.GenericEvent)
		if err := mgr.Add(looking(r.Names, looks)); err != nil {
			return fmt.Errorf("adding looks at endpoints: %w", err)
		}
		built = built.WatchesRawSource(source.Channel(looks, &handler.EnqueueRequestForObject{}))
	}
	err := built.WithOptions(controller.Options{RateLimiter: record.RetryRates()}).
		Complete(dog.Watch("tinkerendpoint", r))
	if err != nil {
		return fmt.Errorf("setting up tinkerendpoint: %w", err)
	}
	return nil
}

// endpointOfRun returns the endpoint that a run names, if the manager serves it.
func (r *Reconciler) endpointOfRun(_ context.Context, object client.Object) []reconcile.Request {
	run, ok := object.(*v1alpha1.TrainingRun)
	if !ok || run.Spec.Tinker.EndpointRef == nil {
		return nil
	}
	name := run.Spec.Tinker.EndpointRef.Name
	if len(r.Names) > 0 && !slices.Contains(r.Names, name) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}

// looking sends an event for each name at once, and then every lookInterval.
func looking(names []string, looks chan<- event.GenericEvent) manager.RunnableFunc {
	return func(ctx context.Context) error {
		ticker := time.NewTicker(lookInterval)
		defer ticker.Stop()
		for {
			for _, name := range names {
				object := &v1alpha1.TinkerEndpoint{ObjectMeta: metav1.ObjectMeta{Name: name}}
				select {
				case looks <- event.GenericEvent{Object: object}:
				case <-ctx.Done():
					return nil
				}
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return nil
			}
		}
	}
}
