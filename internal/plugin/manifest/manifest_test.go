// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// arithmetic returns the run of the smallest sample.
func arithmetic(t *testing.T) map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "samples", "arithmetic.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := Parse(data)
	if err != nil || len(all.Runs) != 1 || len(all.Environments) != 1 {
		t.Fatalf("the sample has %d runs and %d environments (%v)", len(all.Runs), len(all.Environments), err)
	}
	return all.Runs[0].Object
}

func TestSet(t *testing.T) {
	cases := map[string]struct {
		assignment string
		path       []string
		want       any
	}{
		"a number": {"spec.algorithm.optimizer.learningRate=2.0e-5",
			[]string{"spec", "algorithm", "optimizer", "learningRate"}, 2e-5},
		"a whole number": {"spec.algorithm.steps=100", []string{"spec", "algorithm", "steps"}, int64(100)},
		"a boolean":      {"spec.suspend=true", []string{"spec", "suspend"}, true},
		"a text": {"spec.model.name=Qwen/Qwen3-8B", []string{"spec", "model", "name"},
			"Qwen/Qwen3-8B"},
		"a value of an enumeration": {"spec.algorithm.advantage.scale=GroupStd",
			[]string{"spec", "algorithm", "advantage", "scale"}, "GroupStd"},
		"a block that is not there yet": {"spec.initFrom.runRef.name=other", []string{"spec", "initFrom", "runRef", "name"},
			"other"},
		"a list of texts": {"spec.model.trainModules=MLP,Attention", []string{"spec", "model", "trainModules"},
			[]any{"MLP", "Attention"}},
		"a list as JSON": {`spec.model.trainModules=["MLP"]`, []string{"spec", "model", "trainModules"}, []any{"MLP"}},
		"an object as JSON": {`spec.initFrom={"checkpoint": "x"}`, []string{"spec", "initFrom"},
			map[string]any{"checkpoint": "x"}},
		"null removes":      {"spec.evaluation=null", []string{"spec", "evaluation"}, nil},
		"an entry of a map": {"metadata.labels[team/a.b]=c=d", []string{"metadata", "labels", "team/a.b"}, "c=d"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := arithmetic(t)
			if err := Set(object, tc.assignment); err != nil {
				t.Fatal(err)
			}
			got, _, err := unstructured.NestedFieldNoCopy(object, tc.path...)
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("the field, %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestSetEntryOfList(t *testing.T) {
	object := arithmetic(t)
	if err := Set(object, "spec.environments[arithmetic].sampling.temperature=0.5"); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"name": "arithmetic", "groupSize": float64(8),
		"sampling": map[string]any{"maxTokens": float64(16), "temperature": 0.5}}
	entries := object["spec"].(map[string]any)["environments"].([]any)
	if diff := cmp.Diff(want, entries[0]); diff != "" || len(entries) != 1 {
		t.Errorf("the entry (-want +got):\n%s", diff)
	}
}

func TestSetAddsAnEntryWhoseKeyIsEnumerated(t *testing.T) {
	object := arithmetic(t)
	for _, assignment := range []string{"spec.podOverrides[Learner].resources.limits[cpu]=2",
		"spec.podOverrides[Learner].image=own:1", "spec.podOverrides[All].schedulerName=batch",
		"spec.podOverrides[Workers]=null"} {
		if err := Set(object, assignment); err != nil {
			t.Fatal(err)
		}
	}
	want := []any{
		map[string]any{"target": "Learner", "image": "own:1",
			"resources": map[string]any{"limits": map[string]any{"cpu": "2"}}},
		map[string]any{"target": "All", "schedulerName": "batch"},
	}
	if diff := cmp.Diff(want, object["spec"].(map[string]any)["podOverrides"]); diff != "" {
		t.Errorf("podOverrides (-want +got):\n%s", diff)
	}
}

func TestSetRefuses(t *testing.T) {
	for assignment, want := range map[string]string{
		"spec.algorithm.optimizer.learningrate=1":   "did you mean spec.algorithm.optimizer.learningRate?",
		"spec.algoritm.steps=1":                     "did you mean spec.algorithm.steps?",
		"algorithm.steps=1":                         "did you mean spec.algorithm.steps?",
		"learningRate=1":                            "did you mean spec.algorithm.optimizer.learningRate?",
		"spec.environments[a].groupsize=8":          `has no entry "a", its entries are arithmetic`,
		"spec.environments[arithmetic].grupSize=8":  "did you mean spec.environments[arithmetic].groupSize?",
		"spec.environments.groupSize=8":             "choose an entry, as in spec.environments[arithmetic].groupSize",
		"spec.algorithm.roles[x].name=x":            "has no entries: add one to the file",
		"spec.podOverrides[Learners].image=x":       "has no entries: add one to the file",
		"spec.algorithm.steps=1.5":                  "is not a whole number",
		"spec.algorithm.steps=ten":                  "is not a whole number",
		"spec.algorithm.optimizer.learningRate=x":   "is not a number",
		"spec.algorithm.optimizer.learningRate=NaN": "is not a number",
		"spec.suspend=yes":                          "is not true or false",
		"spec.algorithm.advantage.scale=GroupStdd":  "did you mean GroupStd?",
		"spec.algorithm=x":                          "is not a JSON object",
		"spec.algorithm.steps":                      "write PATH=VALUE",
		"spec.algorithm.steps.x=1":                  "did you mean spec.algorithm.steps?",
		"spec..steps=1":                             "cannot be read",
		"=1":                                        "the path is empty",
		"status.state=Training":                     "the fields are metadata, spec",
	} {
		if err := Set(arithmetic(t), assignment); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", assignment, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"kind: x": "apiVersion",
		"apiVersion: rl.tinker-operator.dev/v1alpha1\nkind: Other": "kind is \"Other\"",
		"a: 1\na: 2":     "already",
		"---\n---\nx: [": "document",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
