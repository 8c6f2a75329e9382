// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkerendpoint

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// TestCreatorsCountWhereAPolicyKeepsThemTrue observes a run with an annotation that its author may have written.
func TestCreatorsCountWhereAPolicyKeepsThemTrue(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), clientgoscheme.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	run := newRun("a", false)
	run.Annotations = map[string]string{v1alpha1.AnnotationCreator: "alice"}
	kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(run,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"team": "a"}}}).Build()
	for trusted, want := range map[bool]string{false: "", true: "alice"} {
		r := New(Reconciler{Client: kube, Live: kube, TrustCreators: trusted})
		runs, err := r.observeRuns(t.Context(), newEndpoint())
		if err != nil {
			t.Fatal(err)
		}
		if _, got := planned(t, newEndpoint(), observed{runs: runs}); len(got.Runs) != 1 || got.Runs[0].User != want {
			t.Errorf("trusted %v: the broker knows %+v, want the user %q", trusted, got.Runs, want)
		}
	}
}
