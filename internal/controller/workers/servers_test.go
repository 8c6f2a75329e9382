// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/test/admit"
)

func newRun(name string) *v1alpha1.TrainingRun {
	run := &v1alpha1.TrainingRun{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
		UID: types.UID("uid-" + name)}}
	admit.Default(run)
	return run
}

// listOf is the list of servers as pins write it: a shared one on each port, and one beside the workers.
func listOf(ports ...int32) string {
	pins := desired.Pins{"beside": {Definition: contract.Definition{
		ORS: &contract.ORS{Server: &contract.Server{ServerImage: environment.ServerImage{Image: "sums:dev", Port: 7000}}}}}}
	for _, port := range ports {
		server := &contract.Server{ServerImage: environment.ServerImage{Image: "world:dev", Port: port, Shared: true}}
		pins[string(rune('a'+len(pins)))] = desired.Pin{Definition: contract.Definition{ORS: &contract.ORS{Server: server}}}
	}
	return pins.Servers()
}

// newReconciler returns a reconciler on a cluster with objects. The cluster gives each created object a UID, as an API
// server does.
func newReconciler(t *testing.T, objects ...client.Object) ServersReconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme,
		v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	created := interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object,
		options ...client.CreateOption) error {
		o.SetUID(types.UID("uid-of-" + o.GetName()))
		return c.Create(ctx, o, options...)
	}}
	kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(created).Build()
	return ServersReconciler{Client: kube, Settings: desired.Settings{Image: "operator:dev", SharedServers: true}}
}

// replicas returns the replicas of each Deployment, by its name.
func (r ServersReconciler) replicas(t *testing.T) map[string]int32 {
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

func (r ServersReconciler) reconcile(t *testing.T, run *v1alpha1.TrainingRun, action ServersAction, list string) {
	t.Helper()
	if _, err := r.Reconcile(t.Context(), run, action, list); err != nil {
		t.Fatalf("Reconcile(%d): %v", action, err)
	}
}

func (r ServersReconciler) checkReplicas(t *testing.T, when string, want map[string]int32) {
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

	r.reconcile(t, other, RunServers, listOf(8080))
	r.reconcile(t, run, RunServers, listOf(8080, 8090))
	r.checkReplicas(t, "after Run", map[string]int32{first: 1, second: 1, others: 1})
	for _, name := range []string{first, second} {
		service := &corev1.Service{}
		if err := r.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, service); err != nil {
			t.Errorf("reading the Service: %v", err)
		} else if owner := metav1.GetControllerOf(service); owner == nil || owner.UID != types.UID("uid-of-"+name) {
			t.Errorf("the Service %s belongs to %v, want its Deployment", name, owner)
		}
	}
	r.reconcile(t, run, KeepServers, "")
	r.reconcile(t, run, StopServers, "")
	r.checkReplicas(t, "after Stop", map[string]int32{first: 0, second: 0, others: 1})
	r.reconcile(t, run, RunServers, listOf(8080, 8090))
	r.checkReplicas(t, "after the second Run", map[string]int32{first: 1, second: 1, others: 1})
	r.reconcile(t, run, DeleteServers, "")
	r.checkReplicas(t, "after Delete", map[string]int32{others: 1})
	r.reconcile(t, run, DeleteServers, "")
}

func TestReconcileWritesNothingWithoutTheChartsValue(t *testing.T) {
	r := newReconciler(t)
	r.Settings.SharedServers = false
	r.reconcile(t, newRun("run"), RunServers, listOf(8080))
	r.checkReplicas(t, "without the chart's value", map[string]int32{})
}

// TestReconcileLeavesDeploymentsOfOthers reconciles a Deployment that has the labels and the name of a run's server,
// and does not belong to the run.
func TestReconcileLeavesDeploymentsOfOthers(t *testing.T) {
	run := newRun("run")
	list, err := desired.SharedServers(run, listOf(8080), desired.Settings{Image: "operator:dev"})
	if err != nil || len(list) != 1 {
		t.Fatalf("SharedServers = %v, %v", list, err)
	}
	foreign := list[0]
	foreign.OwnerReferences = nil
	r := newReconciler(t, foreign)
	for _, action := range []ServersAction{StopServers, DeleteServers} {
		r.reconcile(t, run, action, "")
	}
	r.checkReplicas(t, "of others", map[string]int32{foreign.Name: 1})
}

func TestReconcileRepairsAMissingService(t *testing.T) {
	run := newRun("run")
	r := newReconciler(t)
	r.reconcile(t, run, RunServers, listOf(8080))
	service := &corev1.Service{}
	key := client.ObjectKey{Namespace: "default", Name: desired.ServiceName(run) + "-server-8080"}
	if err := r.Client.Get(t.Context(), key, service); err != nil {
		t.Fatal(err)
	}
	if err := r.Client.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	r.reconcile(t, run, RunServers, listOf(8080))
	if err := r.Client.Get(t.Context(), key, service); err != nil {
		t.Errorf("the Service is not created again: %v", err)
	}
}

func TestReconcileRefusesAListThatCannotBeRead(t *testing.T) {
	if _, err := newReconciler(t).Reconcile(t.Context(), newRun("run"), RunServers, "{"); err == nil {
		t.Error("Reconcile reads a list that is not JSON")
	}
}

// serversOf is the list of one shared server, of an environment with a name.
func serversOf(name, image string, port int32) string {
	server := &contract.Server{ServerImage: environment.ServerImage{Image: image, Port: port, Shared: true}}
	return desired.Pins{name: {Definition: contract.Definition{ORS: &contract.ORS{Server: server}}}}.Servers()
}

func (r ServersReconciler) deployment(t *testing.T, run *v1alpha1.TrainingRun, port string) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	err := r.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: desired.ServiceName(run) + "-server-" +
		port}, d)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return d
}

// TestReconcileFollowsTheRun changes the inputs of a server's pods: the Deployment has the change afterwards.
func TestReconcileFollowsTheRun(t *testing.T) {
	run := newRun("run")
	r := newReconciler(t)
	r.reconcile(t, run, RunServers, serversOf("world", "world:v1", 8080))
	before := r.deployment(t, run, "8080")

	r.reconcile(t, run, RunServers, serversOf("world", "world:v2", 8080))
	if image := r.deployment(t, run, "8080").Spec.Template.Spec.Containers[0].Image; image != "world:v2" {
		t.Errorf("after the image changed: the server runs %q, want world:v2", image)
	}
	r.reconcile(t, run, RunServers, serversOf("other", "world:v2", 8080))
	if name := r.deployment(t, run, "8080").Spec.Template.Spec.Containers[0].Name; name != "environment-other" {
		t.Errorf("after another environment took the port: the container is %q, want environment-other", name)
	}
	pod := run.Spec.Override(v1alpha1.TargetWorkers)
	pod.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	pod.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
	r.reconcile(t, run, RunServers, serversOf("other", "world:v2", 8080))
	after := r.deployment(t, run, "8080")
	if spec := after.Spec.Template.Spec; len(spec.ImagePullSecrets) != 1 || !slices.Contains(spec.Tolerations,
		pod.Tolerations[0]) {
		t.Errorf("after podOverrides[target=Workers] changed: imagePullSecrets %v, tolerations %v",
			spec.ImagePullSecrets, spec.Tolerations)
	}
	if after.UID != before.UID || after.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		t.Errorf("the Deployment was made anew, or its strategy is %q", after.Spec.Strategy.Type)
	}
	r.reconcile(t, run, RunServers, serversOf("other", "world:v2", 8080))
	if again := r.deployment(t, run, "8080"); again.ResourceVersion != after.ResourceVersion {
		t.Errorf("a server that has not changed is written again: got %v, want %v",
			again.ResourceVersion, after.ResourceVersion)
	}
}

// TestReconcileDeletesWhatTheRunNoLongerHas moves a server to another port.
func TestReconcileDeletesWhatTheRunNoLongerHas(t *testing.T) {
	run := newRun("run")
	r := newReconciler(t)
	r.reconcile(t, run, RunServers, serversOf("world", "world:v1", 8080))
	r.reconcile(t, run, RunServers, serversOf("world", "world:v1", 9090))
	r.checkReplicas(t, "after the port changed", map[string]int32{desired.ServiceName(run) + "-server-9090": 1})
	r.reconcile(t, run, RunServers, "")
	r.checkReplicas(t, "without a shared server", map[string]int32{})
}

// TestReconcileReportsAServerThatIsReplaced plays the controller of Deployments: as long as it has not ended the pod of
// the former template, workers must not begin.
func TestReconcileReportsAServerThatIsReplaced(t *testing.T) {
	run := newRun("run")
	r := newReconciler(t)
	check := func(when string, want bool) {
		t.Helper()
		got, err := r.Reconcile(t.Context(), run, RunServers, serversOf("world", "world:v2", 8080))
		if err != nil || got != want {
			t.Errorf("%s: Reconcile = %v, %v, want %v", when, got, err, want)
		}
	}
	r.reconcile(t, run, RunServers, serversOf("world", "world:v1", 8080))
	observe := func(d *appsv1.Deployment, status appsv1.DeploymentStatus) {
		t.Helper()
		generation := d.Generation
		if err := r.Client.Update(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		d.Status = status
		if err := r.Client.Status().Update(t.Context(), d); err != nil || d.Generation != generation {
			t.Fatalf("writing the status: %v, generation %d, want %d", err, d.Generation, generation)
		}
	}
	d := r.deployment(t, run, "8080")
	d.Generation = 1
	observe(d, appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1})
	r.reconcile(t, run, RunServers, serversOf("world", "world:v2", 8080))
	d = r.deployment(t, run, "8080")
	d.Generation = 2
	observe(d, d.Status)
	check("before the change is observed", false)
	observe(r.deployment(t, run, "8080"), appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1})
	check("while the former pod runs", false)
	observe(r.deployment(t, run, "8080"), appsv1.DeploymentStatus{ObservedGeneration: 2})
	check("once the former pod is ending", true)
	observe(r.deployment(t, run, "8080"), appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1})
	check("once the next pod runs", true)
}

// holds returns a function that gives the same answer for each namespace: whether the manager acts in it.
func holds(is bool) func(context.Context, string) (bool, error) {
	return func(context.Context, string) (bool, error) { return is, nil }
}

// TestSweeper checks that a manager that may not run shared servers deletes the servers of runs, and nothing else.
func TestSweeper(t *testing.T) {
	run := newRun("run")
	r := newReconciler(t)
	r.reconcile(t, run, RunServers, listOf(8080, 8090))
	foreign := r.deployment(t, run, "8080").DeepCopy()
	foreign.Name, foreign.UID, foreign.OwnerReferences, foreign.ResourceVersion = "foreign", "", nil, ""
	if err := r.Client.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	elsewhere := Sweeper{Client: r.Client, Live: r.Client, Namespaces: []string{"elsewhere"}, Holds: holds(true)}
	if err := elsewhere.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(r.replicas(t)); n != 3 {
		t.Errorf("%d Deployments are left by a manager of another namespace, want 3", n)
	}
	other := Sweeper{Client: r.Client, Live: r.Client, Holds: holds(false)}
	if err := other.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(r.replicas(t)); n != 3 {
		t.Errorf("%d Deployments are left by a manager that does not act in the namespace, want 3", n)
	}
	if err := (Sweeper{Client: r.Client, Live: r.Client, Holds: holds(true)}).Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.checkReplicas(t, "after the sweep", map[string]int32{"foreign": 1})
}
