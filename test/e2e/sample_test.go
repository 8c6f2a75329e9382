// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// TestSample applies the sample that README.md names and checks that the model improves.
func TestSample(t *testing.T) {
	prepare(t, namespace)
	if output, err := kubectl("apply", "-f", "config/samples/arithmetic.yaml"); err != nil {
		t.Fatalf("applying the sample: %v\n%s", err, output)
	}
	if output, err := kubectl("apply", "-f", "config/samples/arithmetic.yaml"); err != nil || strings.Contains(output,
		"configured") {
		t.Errorf("a second apply changes something: %v\n%s", err, output)
	}
	var run v1alpha1.TrainingRun
	env.get(t, namespace, "arithmetic", &run)
	t.Cleanup(func() {
		if t.Failed() {
			describe(t, &run)
		}
	})
	var before *float64
	eventually(t, trainingTime, "the sample has succeeded", func() bool {
		env.get(t, namespace, "arithmetic", &run)
		if before == nil {
			before = run.Status.Metric("test/pass@1")
		}
		return run.Status.State == "Succeeded" || run.Status.State == "Failed"
	})
	if run.Status.State != "Succeeded" || before == nil || run.Status.Metric("test/pass@1") == nil {
		t.Fatalf("the sample ended as %s with metrics %+v", run.Status.State, run.Status.Metrics)
	}
	if rise := *run.Status.Metric("test/pass@1") - *before; rise < 0.30 {
		t.Errorf("held-out pass@1 rose from %.3f to %.3f, want a rise of 0.30 at least", *before,
			*run.Status.Metric("test/pass@1"))
	}
	wantColumns(t)
}

// wantColumns checks the columns that kubectl get prints.
func wantColumns(t *testing.T) {
	t.Helper()
	cases := map[string]struct {
		arguments []string
		header    string
		row       string
	}{
		"the row of a run shows its progress": {
			[]string{"get", "trainingruns", "arithmetic"},
			`^NAME\s+STATE\s+STEP\s+STEPS\s+REWARD\s+PASS@1\s+CHECKPOINT\s+RESTARTS\s+AGE$`,
			`^arithmetic\s+Succeeded\s+60\s+60\s+0\.\d+\s+0\.\d+\s+60\s+0\s+\d+`,
		},
		"the wide row has model, workers, lineage and the likelihood of rows": {
			[]string{"get", "trun", "arithmetic", "-o", "wide"},
			`\s+AGE\s+REASON\s+MODEL\s+USD\s+WORKERS\s+LINEAGE\s+NLL\s+TEST-NLL$`,
			`tinkersim/byte-136k`,
		},
		"the row of an environment shows that it is ready": {
			[]string{"get", "renv", "arithmetic"},
			`^NAME\s+READY\s+TASKS\s+AGE$`,
			`^arithmetic\s+True\s+10000\s+`,
		},
	}
	for name, tc := range cases {
		output, err := kubectl(tc.arguments...)
		header, row, _ := strings.Cut(strings.TrimSpace(output), "\n")
		if err != nil || !regexp.MustCompile(tc.header).MatchString(strings.TrimSpace(header)) ||
			!regexp.MustCompile(tc.row).MatchString(row) {
			t.Errorf("%s: kubectl %s: %v\n%s", name, strings.Join(tc.arguments, " "), err, output)
		}
	}
}
