// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rewardenvironment

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestProbesAreDeletedOnce plans the deletion of a probe again, as happens while the cache still has the probe, and
// then the deletion of its successor.
func TestProbesAreDeletedOnce(t *testing.T) {
	var deleted []string
	r := New(Reconciler{Client: interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.DeleteOption) error {
			if _, ok := object.(*batchv1.Job); ok {
				deleted = append(deleted, object.GetName())
			}
			return nil
		},
	})})
	env := newEnvironment()
	job := func(name string) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: name,
			UID: types.UID("uid of " + name)}}
	}
	for _, jobs := range [][]*batchv1.Job{{job("first")}, {job("first")}, nil, {job("first"), job("second")},
		{job("second")}} {
		if err := r.apply(t.Context(), env, plan{deletes: jobs}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"first", "second"}, deleted); diff != "" {
		t.Errorf("deleted Jobs (-want +got):\n%s", diff)
	}
}
