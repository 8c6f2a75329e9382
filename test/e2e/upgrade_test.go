// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

const previousImage = "tinker-operator:e2e-previous"

// TestUpgradeAndRollback begins a run with the build that hack/previous-version names, upgrades the chart in the middle
// of the run, and rolls back. After each change, it kills learner and workers, so that learner and workers of the other
// build replace them. It checks that the weights equal the weights of an undisturbed run, and that a field of the spec
// that the earlier CRD lacks survives the rollback.
func TestUpgradeAndRollback(t *testing.T) {
	// The run is longer than others: a short one ends between the manager's start and the kill.
	long := func(spec *v1alpha1.TrainingRunSpec) { spec.Algorithm.Steps = 96 }
	undisturbed := start(t, "not-upgraded", long)
	want := finish(t, undisturbed).digest
	wantEachStepOnce(t, undisturbed)
	installPrevious(t)
	run := start(t, "upgraded", long)
	reached(t, run, 2)
	wantImages(t, run, previousImage, previousImage)

	whileStopped(t, run, func() {
		if err := installPresent(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	limited := client.MergeFrom(run.DeepCopy())
	run.Spec.Budget = &v1alpha1.Budget{ActiveSeconds: new(int64(86400))}
	patch(t, run, limited)
	// The present manager receives the heartbeats of the earlier learner.
	reached(t, run, 4)
	eventually(t, podStart, "the status has the steps of the earlier learner", func() bool {
		env.get(t, run.Namespace, run.Name, run)
		return run.Status.Step != nil && *run.Status.Step >= 4
	})
	killAll(t, run)
	wantImages(t, run, image, image)

	whileStopped(t, run, func() {
		if err := helm(t.Context(), "rollback", "tinker-operator", "--wait", "--timeout", "3m"); err != nil {
			t.Fatal(err)
		}
	})
	// The API server deletes fields that it does not know when it writes an object.
	labelled := client.MergeFrom(run.DeepCopy())
	run.Labels = map[string]string{"written": "after-the-rollback"}
	patch(t, run, labelled)
	env.get(t, run.Namespace, run.Name, run)
	if run.Spec.Budget == nil || run.Spec.Budget.ActiveSeconds == nil {
		t.Errorf("after the rollback spec.budget is %+v, want activeSeconds", run.Spec.Budget)
	}
	killAll(t, run)
	wantImages(t, run, previousImage, "")

	got := wantSameEnd(t, run, want)
	if attempt := status.Latest(&got.status).Attempt; attempt == nil || *attempt < 3 {
		t.Errorf("the last checkpoint is of attempt %v, want at least 3", attempt)
	}
}

// installPrevious installs the chart of the previous version, and the present one again at the end of the test.
func installPrevious(t *testing.T) {
	t.Helper()
	archive := filepath.Join(root, "dist", "e2e-previous.tar")
	if err := hack(t.Context(), "previous.sh", previousImage, archive); err != nil {
		t.Fatal(err)
	}
	if err := hack(t.Context(), "cluster/cluster", "load", archive); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if err := installPresent(ctx); err != nil {
			t.Error(err)
		}
	})
	// The chart of the previous version had the CRDs in the release.
	previous := filepath.Join(".cache", "previous")
	if err := command(t.Context(), "kubectl", "replace", "--filename", filepath.Join(previous, "config", "crd",
		"bases")); err != nil {
		t.Fatal(err)
	}
	if err := installChart(t.Context(), previous, previousImage, "--set", "crds.install=false"); err != nil {
		t.Fatal(err)
	}
}

func patch(t *testing.T, run *v1alpha1.TrainingRun, by client.Patch) {
	t.Helper()
	if err := env.Patch(t.Context(), run, by); err != nil {
		t.Fatal(err)
	}
}

// whileStopped does something while the learner's process is stopped, so that the run does not end meanwhile.
func whileStopped(t *testing.T, run *v1alpha1.TrainingRun, do func()) {
	t.Helper()
	pod := learner(t, run)
	env.signal(t, pod, "STOP")
	do()
	env.signal(t, pod, "CONT")
}

// killAll kills the learner's process and deletes all workers.
func killAll(t *testing.T, run *v1alpha1.TrainingRun) {
	t.Helper()
	env.signal(t, learner(t, run), "KILL")
	env.deletePods(t, workers(t, run))
}

// wantImages waits until the learner runs an image, and checks the workers' image; an empty workerImage permits any.
func wantImages(t *testing.T, run *v1alpha1.TrainingRun, learnerImage, workerImage string) {
	t.Helper()
	check := func(pod corev1.Pod, want string) {
		if got := pod.Spec.Containers[0].Image; want != "" && got != want {
			t.Errorf("pod %s runs image %s, want %s", pod.Name, got, want)
		}
	}
	eventually(t, podStart, "the learner runs image "+learnerImage, func() bool {
		return learner(t, run).Spec.Containers[0].Image == learnerImage
	})
	for _, pod := range workers(t, run) {
		check(pod, workerImage)
	}
}
