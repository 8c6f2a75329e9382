// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// pythonImage is the default beside the image of these tests.
var pythonImage = strings.Replace(image, ":", "-python:", 1)

// loadPython builds the image that the manager names for Python, and loads it into the cluster.
func loadPython(t *testing.T) {
	t.Helper()
	loadFolder(t, "python", pythonImage)
}

// loadFolder makes the image of a folder of config/samples/environments, and loads it into the cluster.
func loadFolder(t *testing.T, folder, image string) {
	t.Helper()
	archive := filepath.Join(t.TempDir(), folder+".tar")
	if err := hack(t.Context(), "environment-image.sh", folder, image, archive); err != nil {
		t.Fatal(err)
	}
	if err := hack(t.Context(), "cluster/cluster", "load", archive); err != nil {
		t.Fatal(err)
	}
}

// TestRewardInPython trains on the sample whose reward is a function, in the image that the manager names.
func TestRewardInPython(t *testing.T) {
	prepare(t, namespace)
	loadPython(t)
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
