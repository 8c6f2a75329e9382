// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// sweepRetry is the time between two tries of a Sweeper.
const sweepRetry = time.Minute

// Sweeper deletes the shared servers and program pods of all runs, which an earlier manager has left, for a manager
// that may not run any. It is a Runnable of the manager, and ends once they are deleted.
type Sweeper struct {
	Client client.Client
	// Live reads from the API server: a manager that may not run servers has no cache of Deployments.
	Live client.Reader
	// Namespaces are the namespaces that the manager watches; empty for all.
	Namespaces []string
	// Holds reports whether this manager acts in a namespace: another manager may run the servers of its runs there.
	Holds func(ctx context.Context, namespace string) (bool, error)
}

// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;delete

// Start sweeps until it has succeeded, or until the context ends. The manager calls it on the leader alone.
func (s Sweeper) Start(ctx context.Context) error {
	for {
		err := s.sweep(ctx)
		if err == nil {
			return nil
		}
		log.FromContext(ctx).Error(err, "environment servers of runs are left, which this manager does not run")
		if apierrors.IsForbidden(err) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(sweepRetry):
		}
	}
}

func (s Sweeper) sweep(ctx context.Context) error {
	namespaces := s.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	ofServers, err := labels.Parse(desired.ServersSelector)
	if err != nil {
		return fmt.Errorf("selecting environment servers: %w", err)
	}
	for _, namespace := range namespaces {
		var found appsv1.DeploymentList
		if err := s.Live.List(ctx, &found, client.InNamespace(namespace),
			client.MatchingLabelsSelector{Selector: ofServers}); err != nil {
			return fmt.Errorf("listing environment servers: %w", err)
		}
		for i := range found.Items {
			d := &found.Items[i]
			if owner := metav1.GetControllerOf(d); owner == nil || owner.Kind != "TrainingRun" {
				continue
			}
			if holds, err := s.Holds(ctx, d.Namespace); err != nil {
				return err
			} else if !holds {
				continue
			}
			if err := (ServersReconciler{Client: s.Client}).end(ctx, d, DeleteServers); err != nil {
				return err
			}
		}
	}
	return nil
}
