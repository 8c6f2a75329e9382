// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller adds the controllers to a manager and configures its cache.
package controller

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/controller/kueue"
	"github.com/tinker-operator/tinker-operator/internal/controller/namespacelease"
	"github.com/tinker-operator/tinker-operator/internal/controller/poller"
	"github.com/tinker-operator/tinker-operator/internal/controller/rewardenvironment"
	"github.com/tinker-operator/tinker-operator/internal/controller/tinkerendpoint"
	"github.com/tinker-operator/tinker-operator/internal/controller/trainingrun"
	"github.com/tinker-operator/tinker-operator/internal/controller/warmpool"
	"github.com/tinker-operator/tinker-operator/internal/controller/watchdog"
	"github.com/tinker-operator/tinker-operator/internal/controller/workers"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// Options of the controllers.
type Options struct {
	// ManagerKey is the key from which the credentials of runs derive; at least 32 bytes.
	ManagerKey []byte
	Settings   desired.Settings
	// Identity distinguishes this manager from the managers of other releases. A manager without an identity acts in each
	// namespace that it watches.
	Identity string
	// Namespaces are the namespaces that the manager watches; empty for all.
	Namespaces []string
	// Endpoints are the TinkerEndpoints that the manager serves.
	Endpoints Endpoints
	// WarmPools permits the manager to create claims to warm pools. It needs shared servers.
	WarmPools bool
	// Post sends heartbeats. Defaults to a Poster that uses HTTPS.
	Post poller.Poster
	// HeartbeatEvery is the time between two heartbeats to a learner. Defaults to 2 seconds.
	HeartbeatEvery time.Duration
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
	// Fault is trainingrun.Reconciler's test hook.
	Fault func(point string) error
}

// Endpoints are the TinkerEndpoints that a manager serves, by brokers in Settings.Namespace.
type Endpoints struct {
	// Enabled says that the manager serves TinkerEndpoints.
	Enabled bool
	// Names are the endpoints that the manager may get. If it is empty, the manager may get and watch all.
	Names []string
	// TrustCreators says that an admission policy keeps the annotation with the creator of a run true.
	TrustCreators bool
	// Fixed are the labels by which budgets may select runs.
	Fixed endpoint.FixedLabels
}

// Reader returns the reader of TinkerEndpoints, nil for a manager that serves none, and whether they are watched.
func (e Endpoints) Reader(mgr ctrl.Manager) (reads client.Reader, watches bool) {
	switch {
	case !e.Enabled:
		return nil, false
	case len(e.Names) > 0:
		return mgr.GetAPIReader(), false
	default:
		return mgr.GetClient(), true
	}
}

// setupEndpoints adds the controller of TinkerEndpoints, if the manager serves any.
func setupEndpoints(mgr ctrl.Manager, options Options, dog *watchdog.Watchdog) error {
	reads, _ := options.Endpoints.Reader(mgr)
	if reads == nil {
		return nil
	}
	endpoints := tinkerendpoint.New(tinkerendpoint.Reconciler{
		Client: mgr.GetClient(), Endpoints: reads, Live: mgr.GetAPIReader(), Names: options.Endpoints.Names,
		Recorder: mgr.GetEventRecorder("tinker-operator"), ManagerKey: options.ManagerKey, Settings: options.Settings,
		Now: options.Now, TrustCreators: options.Endpoints.TrustCreators, Fixed: options.Endpoints.Fixed,
	})
	return endpoints.SetupWithManager(mgr, dog)
}

// withDefaults sets options that are not given to their defaults.
func (o Options) withDefaults() Options {
	if o.HeartbeatEvery == 0 {
		o.HeartbeatEvery = 2 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Post == nil {
		o.Post = poller.NewPoster(o.ManagerKey, o.Now)
	}
	return o
}

// pools returns the connection to warm pools; nil if the manager may not create claims.
func (o Options) pools(mgr ctrl.Manager) (*warmpool.Link, error) {
	if !o.Settings.SharedServers || !o.WarmPools {
		return nil, nil //nolint:nilnil // No link is no error.
	}
	return warmpool.NewLink(mgr, o.Namespaces, o.Now)
}

// Setup adds the controllers and the heartbeats to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, options Options) error {
	options = options.withDefaults()
	learners := poller.New(poller.Config{
		Every: options.HeartbeatEvery, Timeout: 5 * time.Second, Post: options.Post, Now: options.Now,
	})
	if err := mgr.Add(learners); err != nil {
		return fmt.Errorf("adding heartbeats: %w", err)
	}
	// The watchdog uses the machine's clock: Options.Now of a test may jump.
	dog := watchdog.New(time.Now)
	if err := mgr.AddHealthzCheck("reconciles", dog.Check); err != nil {
		return fmt.Errorf("adding the health check of reconciles: %w", err)
	}
	recorder := mgr.GetEventRecorder("tinker-operator")
	leases := namespacelease.New(mgr.GetClient(), mgr.GetAPIReader(), recorder, options.Identity, options.Now)
	if leases != nil {
		if err := mgr.Add(leases); err != nil {
			return fmt.Errorf("adding the leases of namespaces: %w", err)
		}
	}
	queues, err := kueue.NewLink(mgr, options.Namespaces, options.Now)
	if err != nil {
		return err
	}
	pools, err := options.pools(mgr)
	if err != nil {
		return err
	}
	endpoints, watched := options.Endpoints.Reader(mgr)
	runs := trainingrun.New(trainingrun.Reconciler{
		Kueue: queues, Pools: pools, Endpoints: endpoints, WatchEndpoints: watched, Fixed: options.Endpoints.Fixed,
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Poller: learners, Recorder: recorder, Leases: leases,
		ManagerKey: options.ManagerKey, Settings: options.Settings, Now: options.Now, Fault: options.Fault,
	})
	if !options.Settings.SharedServers {
		err := mgr.Add(workers.Sweeper{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Namespaces: options.Namespaces, Holds: leases.Holds,
		})
		if err != nil {
			return fmt.Errorf("adding the end of environment servers: %w", err)
		}
	}
	if err := runs.SetupWithManager(ctx, mgr, dog); err != nil {
		return err
	}
	environments := rewardenvironment.New(rewardenvironment.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: recorder, Leases: leases, Settings: options.Settings,
		Now: options.Now, Pools: pools,
	})
	if err := environments.SetupWithManager(mgr, dog); err != nil {
		return err
	}
	return setupEndpoints(mgr, options, dog)
}

// CacheOptions limit the memory of the manager. It caches only its own Jobs and Services, and its pods of
// learners and probes, and of these objects only the fields that it reads.
func CacheOptions(namespaces []string, sharedServers bool) (cache.Options, error) {
	own := labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue})
	roles, err := labels.NewRequirement(v1alpha1.LabelRole, selection.In,
		[]string{v1alpha1.RoleLearner, v1alpha1.RoleProbe})
	if err != nil {
		return cache.Options{}, fmt.Errorf("selecting pods: %w", err)
	}
	options := cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&batchv1.Job{}:    {Label: own, Transform: strip},
			&corev1.Service{}: {Label: own},
			&corev1.Pod{}:     {Label: own.Add(*roles), Transform: strip},
		},
	}
	if sharedServers {
		options.ByObject[&appsv1.Deployment{}] = cache.ByObject{Label: own}
		options.ByObject[&networkingv1.NetworkPolicy{}] = cache.ByObject{Label: own}
	}
	if len(namespaces) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range namespaces {
			options.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	return options, nil
}

// strip removes the unused fields of pods and Jobs, which are most of a pod's spec. It keeps the Secrets of a Job's
// template.
func strip(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Pod:
		o.ManagedFields = nil
		o.Spec = corev1.PodSpec{NodeName: o.Spec.NodeName, Containers: images(o.Spec.Containers),
			InitContainers: images(o.Spec.InitContainers)}
	case *batchv1.Job:
		o.ManagedFields = nil
		o.Spec.Template.Spec = corev1.PodSpec{Volumes: secrets(o.Spec.Template.Spec.Volumes)}
	}
	return object, nil
}

func secrets(volumes []corev1.Volume) []corev1.Volume {
	var kept []corev1.Volume
	for _, v := range volumes {
		if v.Secret != nil {
			kept = append(kept, v)
		}
	}
	return kept
}

func images(containers []corev1.Container) []corev1.Container {
	var kept []corev1.Container
	for _, c := range containers {
		kept = append(kept, corev1.Container{Name: c.Name, Image: c.Image})
	}
	return kept
}
