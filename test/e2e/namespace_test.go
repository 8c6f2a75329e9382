// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// deletedNamespace is a namespace that a test deletes.
const deletedNamespace = "e2e-deleted"

// TestDeleteNamespaceOfARun deletes a namespace in which a run trains, and checks that the namespace disappears without
// another attempt. This takes 16 seconds on an idle machine: learner and workers drain, and the namespace controller
// looks again after half of the Pods' grace period.
func TestDeleteNamespaceOfARun(t *testing.T) {
	run := startIn(t, deletedNamespace, "trains", func(spec *v1alpha1.TrainingRunSpec) {
		spec.Algorithm.Steps, spec.Artifacts = 100000, nil
	})
	eventually(t, podStart, "the run trains", func() bool {
		env.get(t, deletedNamespace, run.Name, run)
		return run.Status.Step != nil && *run.Status.Step > 0
	})
	began := time.Now()
	if err := env.Delete(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: deletedNamespace}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, podStart, "the namespace is gone", func() bool {
		var current v1alpha1.TrainingRun
		if err := env.Get(t.Context(), client.ObjectKeyFromObject(run), &current); err == nil {
			if len(current.Status.Attempts) != 1 {
				t.Fatalf("the run has %d attempts, want 1", len(current.Status.Attempts))
			}
		}
		err := env.Get(t.Context(), client.ObjectKey{Name: deletedNamespace}, &corev1.Namespace{})
		return apierrors.IsNotFound(err)
	})
	t.Logf("the namespace was gone after %s", time.Since(began).Round(time.Second))
}
