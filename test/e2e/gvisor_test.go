// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && gvisor

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGVisor trains on the tests of code where only gVisor is enough isolation: beside workers, which reach their
// runners through a volume of the pod, and in pods of the run. The probe must find each row's solution right.
func TestGVisor(t *testing.T) {
	prepare(t, namespace)
	loadPython(t)
	sample, err := os.ReadFile(filepath.Join(root, "config", "samples", "code-tests.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	const dataset, environments = "spec:\n  dataset:", "  environments:\n"
	for name, replacements := range map[string][]string{
		"beside-workers": {
			dataset, "spec:\n  pod: {runtimeClassName: gvisor}\n" +
				"  execution: {isolation: {minimum: RuntimeClass}}\n  dataset:",
			environments, "  podOverrides: [{target: Workers, runtimeClassName: gvisor}]\n" + environments,
		},
		"in-pods": {
			dataset, "spec:\n  execution:\n    isolation: {minimum: RuntimeClass}\n" +
				"    placement: Pods\n    pods: {runtimeClassName: gvisor}\n  dataset:",
		},
	} {
		t.Run(name, func(t *testing.T) {
			manifests := strings.NewReplacer(append(replacements, "code-tests", name)...).Replace(string(sample))
			if strings.Count(manifests, "gvisor") != strings.Count(strings.Join(replacements, ""), "gvisor") {
				t.Fatalf("code-tests.yaml has not one dataset and one list of environments:\n%s", manifests)
			}
			run := applySample(t, writeFile(t, name+".yaml", manifests), name)
			if ratio := run.Status.Environments[0].FaultRatio; ratio == nil || *ratio != 0 {
				t.Errorf("the environments ended with %+v, want no faults", run.Status.Environments)
			}
		})
	}
}
