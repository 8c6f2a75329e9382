// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkerendpoint

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

// pruneInterval is the time between two looks for old usage, and listed the number of objects that one request lists.
const (
	pruneInterval = 24 * time.Hour
	listed        = 500
)

// prune deletes the usage of days that are no longer kept. It reads only names.
func (r *Reconciler) prune(ctx context.Context, of *v1alpha1.TinkerEndpoint) error {
	if at := r.pruned.Get(of); !at.IsZero() && r.Now().Sub(at) < pruneInterval {
		return nil
	}
	oldest := r.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -endpoint.UsageDays)
	for next := ""; ; {
		found := &metav1.PartialObjectMetadataList{}
		found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
		err := r.Live.List(ctx, found, client.InNamespace(r.Settings.Namespace), client.Limit(listed), client.Continue(next))
		if err != nil {
			return fmt.Errorf("listing the usage: %w", err)
		}
		for i := range found.Items {
			day, ok := endpoint.DayOfUsage(of.Name, found.Items[i].Name)
			if !ok || !day.Before(oldest) {
				continue
			}
			if err := client.IgnoreNotFound(r.Client.Delete(ctx, &found.Items[i])); err != nil {
				return fmt.Errorf("deleting the usage of %s: %w", day.Format(time.DateOnly), err)
			}
		}
		if next = found.Continue; next == "" {
			break
		}
	}
	r.pruned.Set(of, r.Now())
	return nil
}
