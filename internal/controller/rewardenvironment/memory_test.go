// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rewardenvironment

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

func TestMemoryEndsWithItsEnvironment(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	r := New(Reconciler{Client: fake.NewClientBuilder().WithScheme(scheme).Build()})
	env := newEnvironment()
	key := client.ObjectKeyFromObject(env)
	remember := func() {
		refused := apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "probe", nil)
		if !r.refusals.Record(env, v1alpha1.RoleProbe, "probe", refused, now) {
			t.Fatal("the refusal was not recorded")
		}
		r.probes.Set(env, probes{started: now, deleted: []types.UID{"first"}})
	}

	remember()
	if known := r.probes.Get(env); !known.started.Equal(now) || len(known.deleted) != 1 {
		t.Errorf("known of the environment is %+v", known)
	}
	another := newEnvironment(func(e *v1alpha1.RewardEnvironment) { e.UID = "another" })
	if known := r.probes.Get(another); !known.started.IsZero() || len(known.deleted) > 0 {
		t.Errorf("known of another environment of its name is %+v, want nothing", known)
	}

	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
	if known := r.probes.Get(env); !known.started.IsZero() || len(known.deleted) > 0 {
		t.Errorf("known of a deleted environment is %+v, want nothing", known)
	}
	if refused := r.refusals.Latest(env, v1alpha1.RoleProbe); refused.Code != "" {
		t.Errorf("the refusal of a deleted environment is %+v, want none", refused)
	}
}
