// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"bytes"
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// programsOf returns the list of one program with pods of its own, and the name of the program's objects.
func programsOf(t *testing.T, run *v1alpha1.TrainingRun, replicas int32) (list, name string) {
	t.Helper()
	pods, err := json.Marshal(v1alpha1.ExecutionPods{Replicas: replicas, Network: environment.PodNetworkNone})
	if err != nil {
		t.Fatal(err)
	}
	definition := contract.Definition{
		Reward: &environment.Reward{RewardRule: environment.RewardRule{Python: &environment.Python{
			Source: environment.Source{Code: "x"}, Processes: 1, Concurrency: 1}}},
		Execution: &contract.Execution{FunctionImage: environment.FunctionImage{Placement: environment.PlacementPods},
			Pods: pods},
	}
	pins := desired.Pins{"own": {Definition: definition}}
	return pins.Servers(), contract.ProgramName(desired.ServiceName(run), definition.ProgramID())
}

// TestReconcileProgramsWithPods runs, stops and deletes a program with pods of its own. Its NetworkPolicy exists as
// long as the Deployment does, and is restored after a change or a deletion.
func TestReconcileProgramsWithPods(t *testing.T) {
	run := newRun("run")
	r := newReconciler(t)
	r.ManagerKey = bytes.Repeat([]byte("k"), 32)
	list, name := programsOf(t, run, 3)
	key := client.ObjectKey{Namespace: "default", Name: name}
	hasPolicy := func(when string, want bool) {
		t.Helper()
		err := r.Client.Get(t.Context(), key, &networkingv1.NetworkPolicy{})
		if client.IgnoreNotFound(err) != nil || (err == nil) != want {
			t.Errorf("%s: reading the policy: %v, want it: %v", when, err, want)
		}
	}
	r.reconcile(t, run, RunServers, list)
	r.checkReplicas(t, "after Run", map[string]int32{name: 3})
	hasPolicy("after Run", true)
	service := &corev1.Service{}
	if err := r.Client.Get(t.Context(), key, service); err != nil || service.Spec.ClusterIP != corev1.ClusterIPNone {
		t.Errorf("the Service has the address %q: %v", service.Spec.ClusterIP, err)
	}
	var secrets corev1.SecretList
	if err := r.Client.List(t.Context(), &secrets); err != nil || len(secrets.Items) != 1 {
		t.Errorf("%d Secrets: %v, want one", len(secrets.Items), err)
	}
	policy := &networkingv1.NetworkPolicy{}
	if err := r.Client.Get(t.Context(), key, policy); err != nil {
		t.Fatal(err)
	}
	policy.Spec.PolicyTypes = policy.Spec.PolicyTypes[:1]
	if err := r.Client.Update(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	r.reconcile(t, run, RunServers, list)
	if err := r.Client.Get(t.Context(), key, policy); err != nil || len(policy.Spec.PolicyTypes) != 2 {
		t.Errorf("the policy that somebody has opened has the types %v: %v", policy.Spec.PolicyTypes, err)
	}
	if err := r.Client.Delete(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	r.reconcile(t, run, RunServers, list)
	hasPolicy("after somebody has deleted it", true)
	r.reconcile(t, run, StopServers, "")
	r.checkReplicas(t, "after Stop", map[string]int32{name: 0})
	r.reconcile(t, run, RunServers, list)
	r.checkReplicas(t, "after the second Run", map[string]int32{name: 3})
	other, otherName := programsOf(t, run, 2)
	r.reconcile(t, run, RunServers, other)
	r.checkReplicas(t, "after the environment has changed", map[string]int32{otherName: 2})
	hasPolicy("after the environment has changed", false)
	r.reconcile(t, run, DeleteServers, "")
	r.checkReplicas(t, "after Delete", map[string]int32{})
}
