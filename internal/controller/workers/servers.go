// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// ServersAction is what is to be done about the servers of a run.
type ServersAction int

// The actions.
const (
	// KeepServers leaves them as they are.
	KeepServers ServersAction = iota
	// RunServers runs them.
	RunServers
	// StopServers scales them to 0.
	StopServers
	// DeleteServers deletes them with their Services.
	DeleteServers
)

// ServersReconciler runs the servers of runs.
type ServersReconciler struct {
	Client   client.Client
	Settings desired.Settings
	// Place adds to the template of the server with a port what the admission of a queue adds; nil for nothing.
	Place func(ctx context.Context, port int32, template *corev1.PodTemplateSpec) error
}

// Reconcile does what the action says. The list is what desired.Pins.Servers has written; RunServers alone reads it. It
// reports whether all servers are those of the list: one that is replaced is not as long as the former one may still
// answer.
func (r ServersReconciler) Reconcile(ctx context.Context, run *v1alpha1.TrainingRun, action ServersAction,
	list string) (bool, error) {
	if !r.Settings.SharedServers || action == KeepServers {
		return true, nil
	}
	var found appsv1.DeploymentList
	if err := r.Client.List(ctx, &found, client.InNamespace(run.Namespace),
		client.MatchingLabels(desired.SharedLabels(run))); err != nil {
		return false, fmt.Errorf("listing environment servers: %w", err)
	}
	existing := map[string]*appsv1.Deployment{}
	for i := range found.Items {
		if d := &found.Items[i]; metav1.IsControlledBy(d, run) {
			existing[d.Name] = d
		}
	}
	if action == RunServers {
		return r.run(ctx, run, existing, list)
	}
	for _, d := range existing {
		if err := r.end(ctx, d, action); err != nil {
			return false, err
		}
	}
	return true, nil
}

// run deletes what the run no longer has, creates what is missing, starts what was stopped, and replaces what has
// changed.
func (r ServersReconciler) run(ctx context.Context, run *v1alpha1.TrainingRun, existing map[string]*appsv1.Deployment,
	list string) (bool, error) {
	wanted, err := desired.SharedServers(run, list, r.Settings)
	if err != nil {
		return false, err
	}
	named := map[string]bool{}
	for _, want := range wanted {
		named[want.Name] = true
	}
	for name, d := range existing {
		if named[name] {
			continue
		}
		if err := r.end(ctx, d, DeleteServers); err != nil {
			return false, err
		}
	}
	all := true
	for _, want := range wanted {
		d := existing[want.Name]
		if d == nil {
			if err := r.place(ctx, want); err != nil {
				return false, err
			}
			if d, err = want, client.IgnoreAlreadyExists(r.Client.Create(ctx, want)); err != nil {
				return false, fmt.Errorf("creating environment server: %w", err)
			}
		} else if d, err = r.update(ctx, d, want); err != nil {
			return false, err
		}
		if d.UID == "" {
			continue // The cache trails: the Deployment's own event leads here again.
		}
		all = all && replaced(d)
		if err := r.serve(ctx, d); err != nil {
			return false, err
		}
	}
	return all, nil
}

// place adds what the admission adds. A run that a queue has evicted has no Deployments, so that each is made anew.
func (r ServersReconciler) place(ctx context.Context, d *appsv1.Deployment) error {
	if r.Place == nil {
		return nil
	}
	return r.Place(ctx, d.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort, &d.Spec.Template)
}

// update gives a Deployment one replica of the server that is wanted, and returns it as it is then.
func (r ServersReconciler) update(ctx context.Context, d, want *appsv1.Deployment) (*appsv1.Deployment, error) {
	const digest = v1alpha1.AnnotationTemplate
	if d.Annotations[digest] == want.Annotations[digest] {
		return r.scale(ctx, d, 1)
	}
	if err := r.place(ctx, want); err != nil {
		return nil, err
	}
	changed := d.DeepCopy()
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, digest, want.Annotations[digest])
	changed.Spec.Replicas, changed.Spec.Strategy, changed.Spec.Template = want.Spec.Replicas, want.Spec.Strategy,
		want.Spec.Template
	if err := r.Client.Patch(ctx, changed, client.MergeFrom(d)); err != nil {
		return nil, fmt.Errorf("replacing environment server: %w", err)
	}
	return changed, nil
}

// replaced says that no pod of a former template is left, apart from those that are ending, to which no Service leads.
// A Deployment that its controller has never observed has no pods at all.
func replaced(d *appsv1.Deployment) bool {
	observed := d.Status.ObservedGeneration
	return observed == 0 || observed >= d.Generation && d.Status.Replicas == d.Status.UpdatedReplicas
}

// serve creates the Service of a server.
func (r ServersReconciler) serve(ctx context.Context, d *appsv1.Deployment) error {
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(d), &corev1.Service{})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the service of an environment server: %w", err)
	}
	if err == nil {
		return nil
	}
	if err := client.IgnoreAlreadyExists(r.Client.Create(ctx, desired.SharedService(d))); err != nil {
		return fmt.Errorf("creating the service of an environment server: %w", err)
	}
	return nil
}

func (r ServersReconciler) end(ctx context.Context, d *appsv1.Deployment, action ServersAction) error {
	if action == StopServers {
		_, err := r.scale(ctx, d, 0)
		return err
	}
	err := r.Client.Delete(ctx, d, client.Preconditions{UID: &d.UID},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting environment server: %w", err)
	}
	return nil
}

func (r ServersReconciler) scale(ctx context.Context, d *appsv1.Deployment,
	replicas int32) (*appsv1.Deployment, error) {
	if ptr.Deref(d.Spec.Replicas, 1) == replicas {
		return d, nil
	}
	changed := d.DeepCopy()
	changed.Spec.Replicas = ptr.To(replicas)
	if err := r.Client.Patch(ctx, changed, client.MergeFrom(d)); err != nil {
		return nil, fmt.Errorf("scaling environment server: %w", err)
	}
	return changed, nil
}
