// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

func newRun(name string) *v1alpha1.TrainingRun {
	run := &v1alpha1.TrainingRun{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)}}
	run.Default()
	return run
}

// listOf is the list of servers as pins write it: a shared one on each port, and one beside the workers.
func listOf(ports ...int32) string {
	pins := desired.Pins{"beside": {Definition: contract.Definition{ORS: &contract.ORS{Server: &contract.ORSServer{Image: "sums:dev", Port: 7000}}}}}
	for _, port := range ports {
		server := &contract.ORSServer{Image: "world:dev", Port: port, Shared: true}
		pins[string(rune('a'+len(pins)))] = desired.Pin{Definition: contract.Definition{ORS: &contract.ORS{Server: server}}}
	}
	return pins.Servers()
}

// newReconciler returns a reconciler on a cluster with objects. The cluster gives what is created a UID, as an API server does.
func newReconciler(t *testing.T, objects ...client.Object) Reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	created := interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
		o.SetUID(types.UID("uid-of-" + o.GetName()))
		return c.Create(ctx, o, options...)
	}}
	kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(created).Build()
	return Reconciler{Client: kube, Settings: desired.Settings{Image: "operator:dev", SharedServers: true}}
}

// replicas are those of each Deployment, by its name.
func (r Reconciler) replicas(t *testing.T) map[string]int32 {
	t.Helper()
	var list appsv1.DeploymentList
	if err := r.Client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	found := map[string]int32{}
	for _, d := range list.Items {
		found[d.Name] = *d.Spec.Replicas
	}
	return found
}

func (r Reconciler) reconcile(t *testing.T, run *v1alpha1.TrainingRun, action Action, list string) {
	t.Helper()
	if err := r.Reconcile(t.Context(), run, action, list); err != nil {
		t.Fatalf("Reconcile(%d): %v", action, err)
	}
}

func (r Reconciler) checkReplicas(t *testing.T, when string, want map[string]int32) {
	t.Helper()
	if diff := cmp.Diff(want, r.replicas(t)); diff != "" {
		t.Errorf("Deployments %s (-want +got):\n%s", when, diff)
	}
}

func TestReconcileActions(t *testing.T) {
	run, other := newRun("run"), newRun("other")
	r := newReconciler(t)
	first, second := desired.ServiceName(run)+"-server-8080", desired.ServiceName(run)+"-server-8090"
	others := desired.ServiceName(other) + "-server-8080"

	r.reconcile(t, other, Run, listOf(8080))
	r.reconcile(t, run, Run, listOf(8080, 8090))
	r.checkReplicas(t, "after Run", map[string]int32{first: 1, second: 1, others: 1})
	for _, name := range []string{first, second} {
		service := &corev1.Service{}
		if err := r.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, service); err != nil {
			t.Errorf("reading the Service: %v", err)
		} else if owner := metav1.GetControllerOf(service); owner == nil || owner.UID != types.UID("uid-of-"+name) {
			t.Errorf("the Service %s belongs to %v, want its Deployment", name, owner)
		}
	}
	r.reconcile(t, run, Keep, "")
	r.reconcile(t, run, Stop, "")
	r.checkReplicas(t, "after Stop", map[string]int32{first: 0, second: 0, others: 1})
	r.reconcile(t, run, Run, listOf(8080, 8090))
	r.checkReplicas(t, "after the second Run", map[string]int32{first: 1, second: 1, others: 1})
	r.reconcile(t, run, Delete, "")
	r.checkReplicas(t, "after Delete", map[string]int32{others: 1})
	r.reconcile(t, run, Delete, "")
}

func TestReconcileWritesNothingWithoutTheChartsValue(t *testing.T) {
	r := newReconciler(t)
	r.Settings.SharedServers = false
	r.reconcile(t, newRun("run"), Run, listOf(8080))
	r.checkReplicas(t, "without the chart's value", map[string]int32{})
}

// TestReconcileLeavesDeploymentsOfOthers has a Deployment with the labels and the name of a run's server that the run does
// not own.
func TestReconcileLeavesDeploymentsOfOthers(t *testing.T) {
	run := newRun("run")
	list, err := desired.SharedServers(run, listOf(8080), desired.Settings{Image: "operator:dev"})
	if err != nil || len(list) != 1 {
		t.Fatalf("SharedServers = %v, %v", list, err)
	}
	foreign := list[0]
	foreign.OwnerReferences = nil
	r := newReconciler(t, foreign)
	for _, action := range []Action{Stop, Delete} {
		r.reconcile(t, run, action, "")
	}
	r.checkReplicas(t, "of others", map[string]int32{foreign.Name: 1})
}

func TestReconcileRepairsAMissingService(t *testing.T) {
	run := newRun("run")
	r := newReconciler(t)
	r.reconcile(t, run, Run, listOf(8080))
	service := &corev1.Service{}
	key := client.ObjectKey{Namespace: "default", Name: desired.ServiceName(run) + "-server-8080"}
	if err := r.Client.Get(t.Context(), key, service); err != nil {
		t.Fatal(err)
	}
	if err := r.Client.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	r.reconcile(t, run, Run, listOf(8080))
	if err := r.Client.Get(t.Context(), key, service); err != nil {
		t.Errorf("the Service is not created again: %v", err)
	}
}

func TestReconcileRefusesAListThatCannotBeRead(t *testing.T) {
	if err := newReconciler(t).Reconcile(t.Context(), newRun("run"), Run, "{"); err == nil {
		t.Error("Reconcile reads a list that is not JSON")
	}
}
