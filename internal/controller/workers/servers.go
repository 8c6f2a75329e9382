// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// ServersAction is an action on the servers of a run.
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

// ServersReconciler runs the servers of runs, and their programs that have pods of their own.
type ServersReconciler struct {
	Client   client.Client
	Settings desired.Settings
	// ManagerKey is the key from which the credentials of runs derive.
	ManagerKey []byte
	// Pools have the claims to warm pools; nil if the manager may not make claims.
	Pools Pools
	// Place adds the placement of a queue's admission to the template of a Deployment. If it is nil, nothing is added.
	Place func(ctx context.Context, deployment *appsv1.Deployment) error
}

// Reconcile executes the action. The list is the output of desired.Pins.Servers; only RunServers reads it. Reconcile
// reports whether all servers are as in the list. A server that is being replaced is not, while the former server may
// still answer.
func (r ServersReconciler) Reconcile(ctx context.Context, run *v1alpha1.TrainingRun, action ServersAction,
	list string) (bool, error) {
	if !r.Settings.SharedServers || action == KeepServers {
		return true, nil
	}
	var found appsv1.DeploymentList
	if err := r.Client.List(ctx, &found, client.InNamespace(run.Namespace),
		client.MatchingLabels(desired.RunLabels(run))); err != nil {
		return false, fmt.Errorf("listing environment servers: %w", err)
	}
	existing := map[string]*appsv1.Deployment{}
	for i := range found.Items {
		if d := &found.Items[i]; metav1.IsControlledBy(d, run) {
			existing[d.Name] = d
		}
	}
	if err := r.reconcileClaims(ctx, run, action, list); err != nil {
		return false, err
	}
	if action == RunServers {
		return r.run(ctx, run, existing, list)
	}
	for _, d := range existing {
		if err := r.end(ctx, d, action); err != nil {
			return false, err
		}
		if err := r.endPolicy(ctx, d, action); err != nil {
			return false, err
		}
	}
	return true, nil
}

// run deletes servers that the run no longer has, creates missing servers, starts stopped servers, and replaces changed
// servers.
func (r ServersReconciler) run(ctx context.Context, run *v1alpha1.TrainingRun, existing map[string]*appsv1.Deployment,
	list string) (bool, error) {
	suffix := contract.SecretSuffix(r.ManagerKey, string(run.UID))
	wanted, err := desired.SharedServers(run, list, r.Settings)
	if err != nil {
		return false, err
	}
	programs, err := desired.ProgramPods(run, list, suffix, r.Settings)
	if err != nil {
		return false, err
	}
	wanted = append(wanted, programs...)
	for name, d := range existing {
		if slices.ContainsFunc(wanted, func(want *appsv1.Deployment) bool { return want.Name == name }) {
			continue
		}
		if err := r.end(ctx, d, DeleteServers); err != nil {
			return false, err
		}
		if err := r.endPolicy(ctx, d, DeleteServers); err != nil {
			return false, err
		}
	}
	all := true
	for _, want := range wanted {
		d, err := r.ensure(ctx, run, existing[want.Name], want, suffix)
		if err != nil {
			return false, err
		}
		if d.UID != "" { // Otherwise the cache trails, and an event of the Deployment causes another reconcile.
			all = all && (isProgram(d) || replaced(d))
		}
	}
	return all, nil
}

// ensure creates a Deployment with the objects that belong to it, or changes the existing one to the wanted state. It
// returns the resulting Deployment.
func (r ServersReconciler) ensure(ctx context.Context, run *v1alpha1.TrainingRun, d, want *appsv1.Deployment,
	suffix string) (*appsv1.Deployment, error) {
	if err := r.confine(ctx, run, want); err != nil {
		return nil, err
	}
	if d == nil {
		if err := r.prepare(ctx, run, want, suffix); err != nil {
			return nil, err
		}
		if err := client.IgnoreAlreadyExists(r.Client.Create(ctx, want)); err != nil {
			return nil, fmt.Errorf("creating environment server: %w", err)
		}
		d = want
	} else {
		var err error
		if d, err = r.update(ctx, run, d, want, suffix); err != nil {
			return nil, err
		}
	}
	if d.UID == "" {
		return d, nil
	}
	return d, r.serve(ctx, d)
}

// isProgram reports whether a Deployment runs a program. Its pods may be replaced while workers call others of its
// pods: a lost call is made again.
func isProgram(d *appsv1.Deployment) bool {
	return d.Labels[v1alpha1.LabelRole] == v1alpha1.RoleProgram
}

// prepare adds the placement of the admission, and makes the Secret of a program. An evicted run has no Deployments, so
// that its next admission creates and places each of them again.
func (r ServersReconciler) prepare(ctx context.Context, run *v1alpha1.TrainingRun, d *appsv1.Deployment,
	suffix string) error {
	if isProgram(d) {
		credentials, err := contract.DeriveCredentials(r.ManagerKey, string(run.UID))
		if err != nil {
			return err
		}
		secret, err := desired.ProgramSecret(run, d.Labels[v1alpha1.LabelProgram], credentials.Token, suffix)
		if err != nil {
			return err
		}
		// The Secret is named after its contents.
		if err := client.IgnoreAlreadyExists(r.Client.Create(ctx, secret)); err != nil {
			return fmt.Errorf("creating the secret of a program: %w", err)
		}
	}
	if r.Place == nil {
		return nil
	}
	return r.Place(ctx, d)
}

// confine makes the NetworkPolicy of a program before the program has pods, and again if it was deleted.
func (r ServersReconciler) confine(ctx context.Context, run *v1alpha1.TrainingRun, want *appsv1.Deployment) error {
	if !isProgram(want) {
		return nil
	}
	return r.restrict(ctx, desired.ProgramPolicy(run, want))
}

// restrict makes a NetworkPolicy of a program, or restores it.
func (r ServersReconciler) restrict(ctx context.Context, policy *networkingv1.NetworkPolicy) error {
	found := &networkingv1.NetworkPolicy{}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(policy), found)
	switch {
	case apierrors.IsNotFound(err):
		if err := client.IgnoreAlreadyExists(r.Client.Create(ctx, policy)); err != nil {
			return fmt.Errorf("creating the network policy of a program: %w", err)
		}
	case err != nil:
		return fmt.Errorf("reading the network policy of a program: %w", err)
	case !equality.Semantic.DeepEqual(found.Spec, policy.Spec):
		changed := found.DeepCopy()
		changed.Spec = policy.Spec
		if err := r.Client.Patch(ctx, changed, client.MergeFrom(found)); err != nil {
			return fmt.Errorf("restoring the network policy of a program: %w", err)
		}
	}
	return nil
}

// endPolicy deletes the NetworkPolicy of a program that is deleted.
func (r ServersReconciler) endPolicy(ctx context.Context, d *appsv1.Deployment, action ServersAction) error {
	if !isProgram(d) || action != DeleteServers {
		return nil
	}
	return r.deletePolicy(ctx, d.Namespace, d.Name)
}

func (r ServersReconciler) deletePolicy(ctx context.Context, namespace, name string) error {
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := client.IgnoreNotFound(r.Client.Delete(ctx, policy)); err != nil {
		return fmt.Errorf("deleting the network policy of a program: %w", err)
	}
	return nil
}

// update sets the wanted replicas of a Deployment, and returns the resulting Deployment.
func (r ServersReconciler) update(ctx context.Context, run *v1alpha1.TrainingRun, d, want *appsv1.Deployment,
	suffix string) (*appsv1.Deployment, error) {
	const digest = v1alpha1.AnnotationTemplate
	if d.Annotations[digest] == want.Annotations[digest] {
		return r.scale(ctx, d, *want.Spec.Replicas)
	}
	if err := r.prepare(ctx, run, want, suffix); err != nil {
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

// replaced reports whether no pod of a former template is left, apart from ending pods, to which no Service leads. A
// Deployment that its controller has never observed has no pods at all.
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
	service := desired.SharedService
	if isProgram(d) {
		service = desired.ProgramService
	}
	if err := client.IgnoreAlreadyExists(r.Client.Create(ctx, service(d))); err != nil {
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
