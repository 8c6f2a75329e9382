// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestWorkflowRunsEachSuite requires that the jobs of the workflow together run the targets that `make test` runs: a
// suite that is added to one of the two must be added to the other.
func TestWorkflowRunsEachSuite(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^([a-z0-9-]+):`).FindAllStringSubmatch(string(makefile), -1) {
		targets[found[1]] = true
	}
	_, recipe, _ := strings.Cut(string(makefile), "\ntest: ")
	_, recipe, _ = strings.Cut(recipe, "\n")
	recipe, _, _ = strings.Cut(recipe, "\n\n")
	want := map[string]bool{}
	for _, word := range regexp.MustCompile(`[a-z0-9-]+`).FindAllString(recipe, -1) {
		if targets[word] && word != "test" { // hack/test.sh
			want[word] = true
		}
	}
	if len(want) < 8 {
		t.Fatalf("`make test` runs the targets %v, want at least 8", slices.Sorted(maps.Keys(want)))
	}

	data, err := os.ReadFile("../../.github/workflows/ci.yml")
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Jobs map[string]struct {
			Strategy struct {
				Matrix struct {
					Include []struct{ Name, Targets string }
				}
			}
		}
	}
	if err := yaml.Unmarshal(data, &workflow); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, job := range workflow.Jobs {
		for _, part := range job.Strategy.Matrix.Include {
			for _, target := range strings.Fields(part.Targets) {
				if got[target] {
					t.Errorf("the workflow runs %s twice, want once", target)
				}
				got[target] = true
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("targets of .github/workflows/ci.yml (-make test +workflow):\n%s", diff)
	}
}
