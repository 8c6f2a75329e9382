// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkerendpoint

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	rules "github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/controller/record"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

// renewEvery is the time between two renewals of the claim to an endpoint.
const renewEvery = endpoint.ClaimDuration / 4

// renew claims an endpoint that no manager has claimed, or renews the claim of this manager when that is due. It does
// so before it observes the broker: a manager whose other steps fail is not gone.
func (r *Reconciler) renew(ctx context.Context, of *v1alpha1.TinkerEndpoint) error {
	now, former := r.Now(), of.Status.RenewTime
	if former != nil && now.Sub(former.Time) < renewEvery && !former.After(now) {
		return nil
	}
	before := of.DeepCopy()
	of.Status.Namespace, of.Status.RenewTime = r.Settings.Namespace, &metav1.Time{Time: now.Truncate(time.Second)}
	return record.Status(ctx, r.Client, before, of)
}

// seenClaim is a claim of another manager, and the time at which this manager first saw it, by its own clock. The
// clocks of the two managers may differ.
type seenClaim struct {
	namespace string
	renewed   time.Time
	since     time.Time
}

// isGone reports whether the manager that serves an endpoint has not renewed its claim for so long that it counts as
// gone. A claim of a version that did not renew claims never ends.
func (r *Reconciler) isGone(of *v1alpha1.TinkerEndpoint) bool {
	if of.Status.RenewTime == nil {
		return false
	}
	now, seen := r.Now(), r.claims.Get(of)
	if seen.namespace != of.Status.Namespace || !seen.renewed.Equal(of.Status.RenewTime.Time) {
		r.claims.Set(of, seenClaim{of.Status.Namespace, of.Status.RenewTime.Time, now})
		return false
	}
	return now.Sub(seen.since) >= endpoint.ClaimDuration
}

// takeOver claims an endpoint whose former manager is gone. It drops the rest of the status, because the reports of the
// former broker are not known to this manager.
func (r *Reconciler) takeOver(ctx context.Context, of *v1alpha1.TinkerEndpoint, former string) (ctrl.Result, error) {
	now := metav1.Time{Time: r.Now().Truncate(time.Second)}
	before := of.DeepCopy()
	of.Status = v1alpha1.TinkerEndpointStatus{Namespace: r.Settings.Namespace, RenewTime: &now, TakeoverTime: &now}
	if err := record.Status(ctx, r.Client, before, of); apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: time.Second}, nil // The other manager is back, or a third one was first.
	} else if err != nil {
		return ctrl.Result{}, err
	}
	r.claims.Set(of, seenClaim{})
	ctrl.LoggerFrom(ctx).Info("taking over the endpoint of a manager that is gone", "namespace", former)
	record.Events(r.Recorder, of, record.Normal(record.TakenOver, "Claim", fmt.Sprintf("The manager in namespace %s "+
		"serves this endpoint from now on: the manager in namespace %s has not renewed its claim for %.0f minutes.",
		r.Settings.Namespace, former, endpoint.ClaimDuration.Minutes())))
	return ctrl.Result{RequeueAfter: time.Second}, nil
}

// untilBroker returns the time until the manager may make the broker of an endpoint: the broker of the release from
// which it took the endpoint over must have ended its service.
func untilBroker(of *v1alpha1.TinkerEndpoint, now time.Time) time.Duration {
	if of.Status.TakeoverTime == nil {
		return 0
	}
	return of.Status.TakeoverTime.Add(endpoint.TakeoverDelay).Sub(now)
}

// leave says once that the manager in another namespace serves an endpoint. Two brokers would each count what their own
// runs use, so that budgets and limits would permit twice as much. The namespace in the status is the claim: it is
// written before the broker is made.
func (r *Reconciler) leave(ctx context.Context, of *v1alpha1.TinkerEndpoint, namespace string) {
	if r.told.Get(of) == namespace {
		return
	}
	r.told.Set(of, namespace)
	ctrl.LoggerFrom(ctx).Info("another manager serves this endpoint", "namespace", namespace)
	record.Events(r.Recorder, of, record.Warning(record.ManagedByOtherManager, "Leave", fmt.Sprintf(
		"The manager in namespace %s leaves this endpoint alone: the manager in namespace %s serves it. Let only one "+
			"release of the operator serve an endpoint. %s", r.Settings.Namespace, namespace, rules.Succession)))
}
