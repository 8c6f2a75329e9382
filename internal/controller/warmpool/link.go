// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// askEvery is the minimum time between two requests by which a Link finds out whether the API server serves claims.
const askEvery = 15 * time.Second

// Link reaches warm pools and claims. Without agent-sandbox in the cluster it watches nothing, and while no environment
// names a pool it asks for nothing. agent-sandbox may be installed, and removed, while the manager runs.
type Link struct {
	manager    ctrl.Manager
	discovery  discovery.ServerResourcesInterface
	namespaces []string
	now        func() time.Time

	// controller gets the events of claims; Watch sets it.
	controller controller.Controller

	mu sync.Mutex
	// asked is the time at which the API server was last asked, and served its answer.
	asked  time.Time
	served bool
	// claims has the claims of runs.
	claims cache.Cache
}

// NewLink returns a Link of a manager that watches the namespaces; an empty list means all.
func NewLink(manager ctrl.Manager, namespaces []string, now func() time.Time) (*Link, error) {
	asks, err := discovery.NewDiscoveryClientForConfigAndClient(manager.GetConfig(), manager.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making discovery client: %w", err)
	}
	return &Link{manager: manager, discovery: asks, namespaces: namespaces, now: now}, nil
}

// Watch lets a controller reconcile a run when its claims change.
func (l *Link) Watch(c controller.Controller) { l.controller = c }

// Served reports whether the cluster has claims.
func (l *Link) Served() (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isServed()
}

func (l *Link) isServed() (bool, error) {
	if now := l.now(); l.asked.IsZero() || now.Sub(l.asked) >= askEvery {
		served, err := l.ask()
		if err != nil {
			return false, err
		}
		l.asked, l.served = now, served
	}
	return l.served, nil
}

// ask asks the API server whether it serves claims, pools and templates.
func (l *Link) ask() (bool, error) {
	found, err := l.discovery.ServerResourcesForGroupVersion(desired.PoolsVersion.String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for warm pools: %w", err)
	}
	for _, kind := range []string{desired.ClaimKind, poolKind, templateKind} {
		if !slices.ContainsFunc(found.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind }) {
			return false, nil
		}
	}
	return true, nil
}

// Reader returns a reader of the claims of runs; nil if the cluster has no agent-sandbox.
func (l *Link) Reader(ctx context.Context) (client.Reader, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	served, err := l.isServed()
	if err != nil || !served {
		return nil, err
	}
	if l.claims == nil {
		if err := l.start(); err != nil {
			return nil, err
		}
	}
	if !l.claims.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("reading claims: %w", context.Cause(ctx))
	}
	return l.claims, nil
}

// start makes a cache of the claims of runs, and makes the controller watch it.
func (l *Link) start() error {
	options := cache.Options{
		HTTPClient: l.manager.GetHTTPClient(), Scheme: l.manager.GetScheme(), Mapper: l.manager.GetRESTMapper(),
		DefaultTransform:     cache.TransformStripManagedFields(),
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}),
	}
	if len(l.namespaces) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range l.namespaces {
			options.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	claims, err := cache.New(l.manager.GetConfig(), options)
	if err != nil {
		return fmt.Errorf("making a cache of claims: %w", err)
	}
	if err := l.manager.Add(claims); err != nil {
		return fmt.Errorf("starting a cache of claims: %w", err)
	}
	owner := handler.EnqueueRequestForOwner(l.manager.GetScheme(), l.manager.GetRESTMapper(), &v1alpha1.TrainingRun{},
		handler.OnlyControllerOwner())
	if err := l.controller.Watch(source.Kind[client.Object](claims, object(desired.ClaimKind), owner)); err != nil {
		return fmt.Errorf("watching claims: %w", err)
	}
	l.claims = claims
	return nil
}
