// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// poolOfTest reads claims from a cluster, which serves no claims if absent is set.
type poolOfTest struct {
	kube   client.Client
	absent *bool
}

func (p poolOfTest) Claims(ctx context.Context, run *v1alpha1.TrainingRun) (map[string]*unstructured.Unstructured, bool,
	error) {
	if *p.absent {
		return nil, false, nil
	}
	var found unstructured.UnstructuredList
	found.SetGroupVersionKind(desired.PoolsVersion.WithKind(desired.ClaimKind + "List"))
	if err := p.kube.List(ctx, &found, client.InNamespace(run.Namespace)); err != nil {
		return nil, false, err
	}
	claims := map[string]*unstructured.Unstructured{}
	for i := range found.Items {
		claims[found.Items[i].GetName()] = &found.Items[i]
	}
	return claims, true, nil
}

// TestReconcileClaims makes the claims of a program, replaces them if the environment has changed, and gives the pods
// back when the run is suspended and when it ends. Nothing is made if the cluster serves no claims.
func TestReconcileClaims(t *testing.T) {
	run := newRun("run")
	r := newReconciler(t)
	r.ManagerKey = bytes.Repeat([]byte("k"), 32)
	absent := true
	r.Pools = poolOfTest{r.Client, &absent}
	listOf := func(replicas int32, code string) (list, name string) {
		pods, err := json.Marshal(v1alpha1.ExecutionPods{Replicas: replicas, Network: environment.PodNetworkNone,
			WarmPoolRef: &v1alpha1.WarmPoolRef{Name: "python"}})
		if err != nil {
			t.Fatal(err)
		}
		definition := contract.Definition{
			Reward: &environment.Reward{RewardRule: environment.RewardRule{Python: &environment.Python{
				Source: environment.Source{Code: code}, Processes: 1, Concurrency: 1}}},
			Execution: &contract.Execution{FunctionImage: environment.FunctionImage{Placement: environment.PlacementPods},
				Pods: pods},
		}
		return desired.Pins{"own": {Definition: definition}}.Servers(),
			contract.ProgramName(desired.ServiceName(run), definition.ProgramID())
	}
	check := func(when string, claims int, names ...string) {
		t.Helper()
		all, _, err := poolOfTest{r.Client, new(bool)}.Claims(t.Context(), run)
		if err != nil || len(all) != claims {
			t.Errorf("%s: claims %v, %v, want %d", when, all, err, claims)
		}
		var services corev1.ServiceList
		var policies networkingv1.NetworkPolicyList
		for _, list := range []client.ObjectList{&services, &policies} {
			if err := r.Client.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
		}
		if len(services.Items) != len(names) || len(policies.Items) != len(names) {
			t.Errorf("%s: %d Services and %d policies, want %q", when, len(services.Items), len(policies.Items), names)
		}
		for i, name := range names {
			if services.Items[i].Name != name || policies.Items[i].Name != name {
				t.Errorf("%s: Service %s and policy %s, want %s", when, services.Items[i].Name, policies.Items[i].Name, name)
			}
		}
	}
	list, name := listOf(3, "x")
	r.reconcile(t, run, RunServers, list)
	check("without agent-sandbox", 0)
	absent = false
	r.reconcile(t, run, RunServers, list)
	r.reconcile(t, run, RunServers, list)
	check("after Run", 3, name)
	r.checkReplicas(t, "after Run", map[string]int32{})
	other, otherName := listOf(2, "y")
	r.reconcile(t, run, RunServers, other)
	check("after the environment has changed", 2, otherName)
	r.reconcile(t, run, StopServers, "")
	check("after Stop", 0)
	r.reconcile(t, run, RunServers, other)
	check("after the second Run", 2, otherName)
	r.ManagerKey = bytes.Repeat([]byte("l"), 32)
	r.reconcile(t, run, RunServers, other)
	check("after the manager's key has changed", 2, otherName)
	r.reconcile(t, run, DeleteServers, "")
	check("after Delete", 0)
	r.reconcile(t, run, DeleteServers, "")
	check("after the second Delete", 0)
}
