// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// askEvery is the minimum time between two requests by which a Link finds out whether the API server has Kueue.
const askEvery = 30 * time.Second

// Link reaches Kueue's objects. Without Kueue in the cluster it watches nothing, and while no run names a queue it asks
// for nothing. Kueue may be installed, and removed, while the manager runs.
type Link struct {
	manager    ctrl.Manager
	discovery  discovery.ServerResourcesInterface
	namespaces []string
	now        func() time.Time

	// controller gets the events of Workloads; Watch sets it.
	controller controller.Controller

	mu sync.Mutex
	// asked is the time at which the API server was last asked, and version its answer: "" for no Kueue.
	asked   time.Time
	version string
	// caches have the Workloads of runs, by version of the API.
	caches map[string]cache.Cache
}

// NewLink returns a Link of a manager that watches the namespaces; an empty list means all.
func NewLink(manager ctrl.Manager, namespaces []string, now func() time.Time) (*Link, error) {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(manager.GetConfig(), manager.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making discovery client: %w", err)
	}
	return &Link{manager: manager, discovery: client, namespaces: namespaces, now: now,
		caches: map[string]cache.Cache{}}, nil
}

// Watch lets a controller reconcile a run when its Workload changes.
func (l *Link) Watch(c controller.Controller) { l.controller = c }

// Observe returns Kueue's state of a run.
func (l *Link) Observe(ctx context.Context, run *v1alpha1.TrainingRun) (State, error) {
	if l == nil || Queue(run) == "" && run.Status.Queue == nil {
		return State{}, nil
	}
	version, workloads, err := l.workloads(ctx)
	if err != nil || version == "" {
		return State{}, err
	}
	state := State{Managed: Queue(run) != "", Version: version}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(Kind(version))
	err = workloads.Get(ctx, types.NamespacedName{Namespace: run.Namespace, Name: Name(run)}, object)
	if apierrors.IsNotFound(err) {
		return state, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("reading workload: %w", err)
	}
	if state.Workload, err = Parse(object); err != nil {
		return State{}, err
	}
	return state, nil
}

// workloads returns the version of Kueue's API, "" if the cluster has no Kueue, and a reader of Workloads.
func (l *Link) workloads(ctx context.Context) (string, client.Reader, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.now(); l.asked.IsZero() || now.Sub(l.asked) >= askEvery {
		version, err := l.ask()
		if err != nil {
			return "", nil, err
		}
		l.asked, l.version = now, version
	}
	if l.version == "" {
		return "", nil, nil
	}
	if l.caches[l.version] == nil {
		if err := l.start(l.version); err != nil {
			return "", nil, err
		}
	}
	workloads := l.caches[l.version]
	if !workloads.WaitForCacheSync(ctx) {
		return "", nil, fmt.Errorf("reading workloads: %w", context.Cause(ctx))
	}
	return l.version, workloads, nil
}

// ask returns the preferred version of Workloads that the API server has.
func (l *Link) ask() (string, error) {
	for _, version := range Versions {
		found, err := l.discovery.ServerResourcesForGroupVersion(Group + "/" + version)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("looking for Kueue: %w", err)
		}
		if slices.ContainsFunc(found.APIResources, func(r metav1.APIResource) bool { return r.Name == "workloads" }) {
			return version, nil
		}
	}
	return "", nil
}

// start makes a cache of the Workloads of runs, and makes the controller watch it.
func (l *Link) start(version string) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(Kind(version))
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
	workloads, err := cache.New(l.manager.GetConfig(), options)
	if err != nil {
		return fmt.Errorf("making a cache of workloads: %w", err)
	}
	if err := l.manager.Add(workloads); err != nil {
		return fmt.Errorf("starting a cache of workloads: %w", err)
	}
	owner := handler.EnqueueRequestForOwner(l.manager.GetScheme(), l.manager.GetRESTMapper(), &v1alpha1.TrainingRun{},
		handler.OnlyControllerOwner())
	if err := l.controller.Watch(source.Kind[client.Object](workloads, object, owner)); err != nil {
		return fmt.Errorf("watching workloads: %w", err)
	}
	l.caches[version] = workloads
	return nil
}

// Do executes an action other than Create. end is the end of the run, for Finish.
func (l *Link) Do(ctx context.Context, run *v1alpha1.TrainingRun, state State, action Action, end Ending) error {
	switch action {
	case Delete:
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(Kind(state.Version))
		object.SetNamespace(run.Namespace)
		object.SetName(state.Workload.Name)
		err := l.manager.GetClient().Delete(ctx, object, client.Preconditions{UID: &state.Workload.UID})
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting workload: %w", err)
		}
		return nil
	case Release:
		return l.patchStatus(ctx, state, state.Workload.Released(l.now()))
	case Finish:
		return l.patchStatus(ctx, state, state.Workload.Finished(l.now(), end.Succeeded, end.Message))
	default:
		return nil
	}
}

// Ending is the end of a run.
type Ending struct {
	Succeeded bool
	Message   string
}

// SetReady says whether all pods of an admitted run are ready.
func (l *Link) SetReady(ctx context.Context, state State, ready bool) error {
	if !state.Managed || !state.Open() {
		return nil
	}
	next, changed := state.Workload.Ready(l.now(), ready)
	if !changed {
		return nil
	}
	return l.patchStatus(ctx, state, next)
}

// Create makes the Workload of a run.
func (l *Link) Create(ctx context.Context, run *v1alpha1.TrainingRun, state State, priority *Priority) error {
	object, err := Build(run, state.Version, state.Sets, priority).Object()
	if err != nil {
		return err
	}
	if err := client.IgnoreAlreadyExists(l.manager.GetClient().Create(ctx, object)); err != nil {
		return fmt.Errorf("creating workload: %w", err)
	}
	return nil
}

// Priority reads the priority of a run's Workload; nil for the default. An error for which apierrors.IsNotFound holds
// reports that the class does not exist.
func (l *Link) Priority(ctx context.Context, run *v1alpha1.TrainingRun, state State) (*Priority, error) {
	class, version := PriorityClassOf(run, state.Sets), state.Version
	if class.Name == "" {
		return nil, nil //nolint:nilnil // No class is no error.
	}
	kind := schema.GroupVersionKind{Group: class.Group, Version: version, Kind: class.Kind}
	if class.Group != Group {
		kind.Version = "v1"
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	if err := l.manager.GetAPIReader().Get(ctx, types.NamespacedName{Name: class.Name}, object); err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", class.Kind, class.Name, err)
	}
	value, _, err := unstructured.NestedInt64(object.Object, "value")
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", class.Kind, class.Name, err)
	}
	return &Priority{Class: class, Value: int32(value)}, nil //nolint:gosec // The API bounds it.
}

// patchStatus writes conditions and admission, unless the Workload has changed since it was read.
func (l *Link) patchStatus(ctx context.Context, state State, next Status) error {
	status := map[string]any{"conditions": next.Conditions}
	if next.Admission == nil {
		status["admission"] = nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": state.Workload.ResourceVersion}, "status": status,
	})
	if err != nil {
		return fmt.Errorf("encoding the status of a workload: %w", err)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(Kind(state.Version))
	object.SetNamespace(state.Workload.Namespace)
	object.SetName(state.Workload.Name)
	err = l.manager.GetClient().Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patching the status of a workload: %w", err)
	}
	return nil
}

// CheckPlaces reports why the pods of an admitted run cannot be placed as they were admitted.
func (l *Link) CheckPlaces(ctx context.Context, state State) error {
	for i := range state.Sets {
		if err := l.Place(ctx, state, state.Sets[i].Name, state.Sets[i].Template.DeepCopy()); err != nil {
			return err
		}
	}
	return nil
}

// Place adds the placement of a run's admission to the pod template of a set. It reads the flavors.
func (l *Link) Place(ctx context.Context, state State, set string, template *corev1.PodTemplateSpec) error {
	if !state.Managed || state.Workload == nil {
		return nil
	}
	flavors := map[string]Flavor{}
	for _, name := range state.Workload.Flavors() {
		flavor, err := l.flavor(ctx, state.Version, name)
		if err != nil {
			return err
		}
		flavors[name] = flavor
	}
	placement, err := state.Workload.Placement(set, flavors)
	if err != nil {
		return err
	}
	if err := placement.Apply(template); err != nil {
		return fmt.Errorf("placing %s: %w", set, err)
	}
	return nil
}

func (l *Link) flavor(ctx context.Context, version, name string) (Flavor, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: Group, Version: version, Kind: "ResourceFlavor"})
	if err := l.manager.GetAPIReader().Get(ctx, types.NamespacedName{Name: name}, object); err != nil {
		return Flavor{}, fmt.Errorf("reading resource flavor %s: %w", name, err)
	}
	text, err := json.Marshal(object.Object["spec"])
	if err != nil {
		return Flavor{}, fmt.Errorf("reading resource flavor %s: %w", name, err)
	}
	var flavor Flavor
	if err := json.Unmarshal(text, &flavor); err != nil {
		return Flavor{}, fmt.Errorf("reading resource flavor %s: %w", name, err)
	}
	return flavor, nil
}
