// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rewardenvironment

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/record"
	"github.com/tinker-operator/tinker-operator/internal/controller/watchdog"
)

// SetupWithManager registers the Reconciler with a manager, for every object that concerns an environment. dog watches
// its reconciles.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, dog *watchdog.Watchdog) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("rewardenvironment").
		For(&v1alpha1.RewardEnvironment{}).
		Owns(&batchv1.Job{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(environmentOfPod)).
		WithOptions(controller.Options{RateLimiter: record.RetryRates()}).
		Complete(dog.Watch("rewardenvironment", r))
	if err != nil {
		return fmt.Errorf("setting up rewardenvironment: %w", err)
	}
	return nil
}

func environmentOfPod(_ context.Context, pod client.Object) []reconcile.Request {
	name := pod.GetLabels()[v1alpha1.LabelEnvironment]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: name}}}
}
