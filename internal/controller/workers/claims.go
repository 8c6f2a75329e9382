// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// Pools have the claims of runs to warm pools.
type Pools interface {
	// Claims returns the claims of a run by their names, and whether the cluster serves claims.
	Claims(ctx context.Context, run *v1alpha1.TrainingRun) (map[string]*unstructured.Unstructured, bool, error)
}

// reconcileClaims makes the claims of the programs in a list that have pods of warm pools, with the Services and
// policies of the pods, and deletes the claims that the run no longer has. A suspended run gives its pods back: all
// that the pods hold can be made again.
func (r ServersReconciler) reconcileClaims(ctx context.Context, run *v1alpha1.TrainingRun, action ServersAction,
	list string) error {
	if r.Pools == nil {
		return nil
	}
	var wanted []desired.PoolProgram
	if action == RunServers {
		var err error
		if wanted, err = desired.PoolPrograms(list); err != nil {
			return err
		}
	}
	// A Service exists from before the first claim until after the last one.
	services, err := r.poolServices(ctx, run)
	if err != nil || len(wanted) == 0 && len(services) == 0 {
		return err
	}
	existing, served, err := r.Pools.Claims(ctx, run)
	if err != nil {
		return err
	}
	if !served && len(wanted) > 0 {
		return nil // The condition PodsReady says so.
	}
	kept := map[string]bool{}
	for _, program := range wanted {
		service := program.Service(run)
		kept[service.Name] = true
		if err := r.lead(ctx, program.Policy(run), service, services); err != nil {
			return err
		}
		if err := r.claim(ctx, run, program, existing); err != nil {
			return err
		}
	}
	for _, claim := range existing { // claims that claim has not removed
		if err := r.release(ctx, claim); err != nil {
			return err
		}
	}
	return r.endPoolServices(ctx, services, kept)
}

// lead makes the NetworkPolicy of a program's pods, and the Service that leads to the pods, unless services has it.
func (r ServersReconciler) lead(ctx context.Context, policy *networkingv1.NetworkPolicy, service *corev1.Service,
	services []corev1.Service) error {
	if err := r.restrict(ctx, policy); err != nil {
		return err
	}
	if slices.ContainsFunc(services, func(s corev1.Service) bool { return s.Name == service.Name }) {
		return nil
	}
	if err := client.IgnoreAlreadyExists(r.Client.Create(ctx, service)); err != nil {
		return fmt.Errorf("creating the service of a program: %w", err)
	}
	return nil
}

// claim makes the missing claims of a program. It removes the claims that stay from existing.
func (r ServersReconciler) claim(ctx context.Context, run *v1alpha1.TrainingRun, program desired.PoolProgram,
	existing map[string]*unstructured.Unstructured) error {
	credentials, err := contract.DeriveCredentials(r.ManagerKey, string(run.UID))
	if err != nil {
		return err
	}
	claims, err := program.Claims(run, credentials.Token)
	if err != nil {
		return err
	}
	const digest = v1alpha1.AnnotationTemplate
	for _, claim := range claims {
		found := existing[claim.GetName()]
		if found == nil {
			if err := client.IgnoreAlreadyExists(r.Client.Create(ctx, claim)); err != nil {
				return fmt.Errorf("claiming a sandbox: %w", err)
			}
		} else if found.GetAnnotations()[digest] == claim.GetAnnotations()[digest] {
			delete(existing, claim.GetName())
		}
	}
	return nil
}

// release deletes a claim, and its pod with it.
func (r ServersReconciler) release(ctx context.Context, claim *unstructured.Unstructured) error {
	if claim.GetDeletionTimestamp() != nil {
		return nil
	}
	err := r.Client.Delete(ctx, claim, client.Preconditions{UID: ptr.To(claim.GetUID())},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting a claim: %w", err)
	}
	return nil
}

// poolServices lists the Services that lead to pods of warm pools. Those of other programs belong to Deployments.
func (r ServersReconciler) poolServices(ctx context.Context, run *v1alpha1.TrainingRun) ([]corev1.Service, error) {
	var found corev1.ServiceList
	if err := r.Client.List(ctx, &found, client.InNamespace(run.Namespace),
		client.MatchingLabels(desired.ProgramLabels(run))); err != nil {
		return nil, fmt.Errorf("listing the services of programs: %w", err)
	}
	var services []corev1.Service
	for _, service := range found.Items {
		if metav1.IsControlledBy(&service, run) {
			services = append(services, service)
		}
	}
	return services, nil
}

// endPoolServices deletes Services whose claims are gone, each after the NetworkPolicy of its name.
func (r ServersReconciler) endPoolServices(ctx context.Context, services []corev1.Service, kept map[string]bool) error {
	for i := range services {
		service := &services[i]
		if kept[service.Name] {
			continue
		}
		if err := r.deletePolicy(ctx, service.Namespace, service.Name); err != nil {
			return err
		}
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, service)); err != nil {
			return fmt.Errorf("deleting the service of a program: %w", err)
		}
	}
	return nil
}
