// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkerendpoint

import (
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

// releases are managers in several namespaces of one API server. Their clocks differ.
type releases struct {
	*testing.T
	kube     client.Client
	now      time.Time
	managers map[string]*Reconciler
}

func newReleases(t *testing.T, skew map[string]time.Duration) *releases {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), clientgoscheme.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	of := &v1alpha1.TinkerEndpoint{ObjectMeta: metav1.ObjectMeta{Name: "shared", UID: "endpoint"}}
	of.Spec.BaseURL, of.Spec.APIKeySecretKeyRef.Name, of.Spec.APIKeySecretKeyRef.Key = "https://tinker", "tinker", "key"
	w := &releases{T: t, now: time.Unix(1_800_000_000, 0), managers: map[string]*Reconciler{},
		kube: fake.NewClientBuilder().WithScheme(scheme).WithObjects(of).WithStatusSubresource(of).Build()}
	for namespace, ahead := range skew {
		settings := desired.Settings{Namespace: namespace, Image: "image:1"}
		settings.Broker.AccessMode, settings.Broker.StorageSize = corev1.ReadWriteOnce, resource.MustParse("1Gi")
		w.managers[namespace] = New(Reconciler{Client: w.kube, Endpoints: w.kube, Live: w.kube,
			Recorder: events.NewFakeRecorder(100), ManagerKey: make([]byte, 32), Settings: settings,
			Now: func() time.Time { return w.now.Add(ahead) }})
	}
	return w
}

// reconcile lets the managers of these namespaces reconcile the endpoint, in this order, and returns its status.
func (w *releases) reconcile(namespaces ...string) v1alpha1.TinkerEndpointStatus {
	w.Helper()
	key := client.ObjectKey{Name: "shared"}
	for _, namespace := range namespaces {
		if _, err := w.managers[namespace].Reconcile(w.Context(), ctrl.Request{NamespacedName: key}); err != nil {
			w.Fatal(err)
		}
	}
	var of v1alpha1.TinkerEndpoint
	if err := w.kube.Get(w.Context(), key, &of); err != nil {
		w.Fatal(err)
	}
	return of.Status
}

func (w *releases) hasBroker(namespace string) bool {
	w.Helper()
	err := w.kube.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: endpoint.ObjectName("shared")},
		&appsv1.Deployment{})
	if client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}
	return err == nil
}

func TestReleasesTakeOverEndpointsOfReleasesThatAreGone(t *testing.T) {
	w := newReleases(t, map[string]time.Duration{"first": 0, "second": 10 * time.Minute, "third": -10 * time.Minute})
	for range 60 { // ten minutes
		if got := w.reconcile("first", "second", "third"); got.Namespace != "first" {
			t.Fatalf("namespace %s serves at %s, want the first", got.Namespace, w.now)
		}
		w.now = w.now.Add(lookInterval)
	}
	if !w.hasBroker("first") || w.hasBroker("second") || w.hasBroker("third") {
		t.Fatal("the first release alone has a broker")
	}
	gone := w.now
	for w.reconcile("second", "third").Namespace == "first" {
		if w.now = w.now.Add(lookInterval); w.now.Sub(gone) > 3*time.Minute {
			t.Fatal("no release has taken over after three minutes")
		}
	}
	if took := w.now.Sub(gone); took < endpoint.ClaimDuration-renewEvery {
		t.Errorf("a release took over after %s, while the first may be alive", took)
	}
	// The first comes back, and does not act.
	took := w.now
	for !w.hasBroker("second") {
		if got := w.reconcile("first", "second", "third"); got.Namespace != "second" {
			t.Fatalf("namespace %s serves, want the second", got.Namespace)
		}
		if w.now = w.now.Add(time.Second); w.now.Sub(took) > time.Minute {
			t.Fatal("the second release has no broker after a minute")
		}
	}
	if waited := w.now.Sub(took); waited < endpoint.TakeoverDelay || endpoint.TakeoverDelay < 2*endpoint.ClaimUse {
		t.Errorf("the second release made its broker after %s, want %s: the first one's may serve for %s", waited,
			endpoint.TakeoverDelay, endpoint.ClaimUse)
	}
	if w.hasBroker("third") {
		t.Error("the third release has a broker, too")
	}
}

func TestClaimsOfVersionsThatDoNotRenewThemStay(t *testing.T) {
	w := newReleases(t, map[string]time.Duration{"second": 0})
	of := &v1alpha1.TinkerEndpoint{}
	if err := w.kube.Get(t.Context(), client.ObjectKey{Name: "shared"}, of); err != nil {
		t.Fatal(err)
	}
	of.Status.Namespace = "first"
	if err := w.kube.Status().Update(t.Context(), of); err != nil {
		t.Fatal(err)
	}
	for range 60 {
		if got := w.reconcile("second"); got.Namespace != "first" {
			t.Fatalf("namespace %s serves, want the first", got.Namespace)
		}
		w.now = w.now.Add(lookInterval)
	}
}
