// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// pythonImage is the default beside the image of these tests.
var pythonImage = strings.Replace(image, ":", "-python:", 1)

// TestRewardInPython trains on the sample whose reward is a function, in the image that the manager names, which is built
// here. The container of the function is killed on the way.
func TestRewardInPython(t *testing.T) {
	prepare(t, namespace)
	archive := filepath.Join(t.TempDir(), "python.tar")
	if err := hack(t.Context(), "environment-image.sh", "python", pythonImage, archive); err != nil {
		t.Fatal(err)
	}
	if err := hack(t.Context(), "cluster/cluster", "load", archive); err != nil {
		t.Fatal(err)
	}
	if output, err := kubectl("apply", "-f", "config/samples/python-reward.yaml"); err != nil {
		t.Fatalf("applying the sample: %v\n%s", err, output)
	}
	killRunner(t)
	run := applySample(t, "config/samples/python-reward.yaml", "python-reward")
	if passed := slices.IndexFunc(run.Status.Metrics, func(m v1alpha1.MetricValue) bool {
		return m.Name == contract.MetricPassAt1
	}); passed < 0 || run.Status.Metrics[passed].Value < 0.6 {
		t.Errorf("the run ended with metrics %+v, want a held-out pass@1 of 0.6 at least", run.Status.Metrics)
	}
	if len(run.Status.Environments) != 1 || run.Status.Environments[0].FaultRatio == nil ||
		*run.Status.Environments[0].FaultRatio != 0 {
		t.Errorf("the environments ended with %+v, want no faults", run.Status.Environments)
	}
}

// killRunner kills the container of the function beside one worker, once the run has trained for some steps, and waits
// for the next one. What it was called for is called again: that it died is no fault.
func killRunner(t *testing.T) {
	t.Helper()
	const container = "environment-python-reward"
	runner := func() (pod string, restarts int32) {
		var pods corev1.PodList
		if err := env.List(t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels{
			v1alpha1.LabelRun: "python-reward", v1alpha1.LabelRole: v1alpha1.RoleRollout}); err != nil {
			t.Fatal(err)
		}
		for _, p := range pods.Items {
			for _, c := range p.Status.InitContainerStatuses {
				if c.Name == container && c.State.Running != nil && (pod == "" || p.Name < pod) {
					pod, restarts = p.Name, c.RestartCount
				}
			}
		}
		return pod, restarts
	}
	var run v1alpha1.TrainingRun
	eventually(t, 8*time.Minute, "the run has trained for 5 steps", func() bool {
		env.get(t, namespace, "python-reward", &run)
		return ptr.Deref(run.Status.Step, 0) >= 5
	})
	pod, before := runner()
	if err := hack(t.Context(), "cluster/cluster", "signal", namespace+"/"+pod, container, "KILL"); err != nil {
		t.Fatal(err)
	}
	eventually(t, 3*time.Minute, "the container runs again", func() bool {
		same, restarts := runner()
		return same == pod && restarts > before
	})
}
