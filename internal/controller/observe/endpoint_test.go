// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// TestObserveEndpoint checks whether a run may use its endpoint, and with which prices. Several looks read a namespace
// and prices once.
func TestObserveEndpoint(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	of := &v1alpha1.TinkerEndpoint{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}
	of.Spec.Allowed.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	of.Spec.Prices = &v1alpha1.EndpointPrices{ConfigMapKeyRef: ref.ConfigMapKey{Name: "prices", Key: "models.json"}}
	of.Status.Namespace = "operator"
	reads := 0
	counted := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey,
		into client.Object, opts ...client.GetOption) error {
		if reads++; key.Name == "hidden" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "tinkerendpoints"}, key.Name, nil)
		}
		return c.Get(ctx, key, into, opts...)
	}}
	live := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(counted).WithObjects(of,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", Labels: map[string]string{"team": "a"}}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "operator", Name: "prices"}, Data: map[string]string{
			"models.json": `[{"tinker_id":"m","prefill":"$1","sample":"$2","train":"$3"}]`}}).Build()
	now := time.Now()
	look := func(o *Observer, namespace, name string) State {
		t.Helper()
		run := &v1alpha1.TrainingRun{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
		if name != "" {
			run.Spec.Tinker.EndpointRef = &ref.Endpoint{Name: name}
		}
		var seen State
		if err := o.observeEndpoint(t.Context(), run, &seen); err != nil {
			t.Fatal(err)
		}
		return seen
	}
	serving := New(Observer{Live: live, Endpoints: live, Namespace: "operator", Now: func() time.Time { return now }})
	another := New(Observer{Live: live, Endpoints: live, Namespace: "canary", Now: func() time.Time { return now }})
	none := New(Observer{Live: live, Now: func() time.Time { return now }})
	for name, tc := range map[string]struct {
		observer            *Observer
		namespace, endpoint string
		code                problem.Code
	}{
		"a key of its own":       {serving, "team-a", "", ""},
		"allowed":                {serving, "team-a", "prod", ""},
		"another namespace":      {serving, "team-b", "prod", problem.EndpointForbidden},
		"missing":                {serving, "team-a", "other", problem.EndpointNotFound},
		"not of this manager":    {serving, "team-a", "hidden", problem.EndpointsDisabled},
		"a manager without them": {none, "team-a", "prod", problem.EndpointsDisabled},
		"of another release":     {another, "team-a", "prod", problem.EndpointsDisabled},
	} {
		seen := look(tc.observer, tc.namespace, tc.endpoint)
		var code problem.Code
		if seen.Endpoint.Problem != nil {
			code = seen.Endpoint.Problem.Code
		}
		if code != tc.code || (seen.LookAgain > 0) != (tc.code != "") {
			t.Errorf("%s: %q and another look in %v, want %q", name, code, seen.LookAgain, tc.code)
		}
	}
	if got := look(serving, "team-a", "prod").Endpoint.Prices["m"].Prompt; got != 1 {
		t.Errorf("the price is %v, want 1", got)
	}
	before := reads
	look(serving, "team-a", "prod")
	if reads != before+1 {
		t.Errorf("another look reads %d objects, want the endpoint alone", reads-before)
	}
	now = now.Add(LookInterval)
	look(serving, "team-a", "prod")
	if reads != before+4 {
		t.Errorf("a later look reads %d objects, want 3", reads-before-1)
	}
}
