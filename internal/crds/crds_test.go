// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/tinker-operator/tinker-operator/config/crd"
)

func parse(t *testing.T, data string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(data), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

// definition returns a CRD whose spec has a list of objects with these fields.
func definition(t *testing.T, names ...string) *unstructured.Unstructured {
	t.Helper()
	properties := map[string]any{}
	for _, name := range names {
		properties[name] = map[string]any{"type": "string"}
	}
	object := parse(t, `
metadata: {name: things.example.com, annotations: {generator: new}}
spec:
  versions:
  - name: v1
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {list: {type: array}}}}}}
`)
	versions := object.Object["spec"].(map[string]any)["versions"].([]any)
	schema := versions[0].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
	if err := unstructured.SetNestedMap(schema, map[string]any{"type": "object", "properties": properties}, "properties",
		"spec", "properties", "list", "items"); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestNextNeverLosesAField(t *testing.T) {
	cases := map[string]struct {
		live, embedded []string
		updates        bool
		problem        string
	}{
		"a later release adds a field":          {[]string{"a"}, []string{"a", "b"}, true, ""},
		"the same fields, perhaps other rules":  {[]string{"a"}, []string{"a"}, true, ""},
		"an earlier release lacks a field":      {[]string{"a", "b"}, []string{"a"}, false, ""},
		"neither is the later one of the other": {[]string{"a", "b"}, []string{"a", "c"}, false, "(v1.spec.list[].b)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			live, embedded := definition(t, tc.live...), definition(t, tc.embedded...)
			next, err := Next(live, embedded)
			if (next != nil) != tc.updates || (err != nil) != (tc.problem != "") {
				t.Fatalf("Next = %v, %v, want an update: %v, an error: %v", next, err, tc.updates, tc.problem != "")
			}
			if err != nil && !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("the error is %q, want %q in it", err, tc.problem)
			}
			if next == nil {
				return
			}
			if diff := cmp.Diff(embedded.Object["spec"], next.Object["spec"]); diff != "" {
				t.Errorf("spec (-embedded +next):\n%s", diff)
			}
		})
	}
}

func TestNextKeepsWhatOthersWrote(t *testing.T) {
	live, embedded := definition(t, "a"), definition(t, "a", "b")
	live.SetResourceVersion("7")
	live.SetLabels(map[string]string{"team": "platform"})
	live.SetAnnotations(map[string]string{"generator": "old", "meta.helm.sh/release-name": "tinker-operator"})
	next, err := Next(live, embedded)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"generator": "new", "meta.helm.sh/release-name": "tinker-operator",
		"helm.sh/resource-policy": "keep"}
	if diff := cmp.Diff(want, next.GetAnnotations()); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if next.GetResourceVersion() != "7" || next.GetLabels()["team"] != "platform" {
		t.Errorf("version %s and labels %v, want the values of the CRD in the cluster", next.GetResourceVersion(),
			next.GetLabels())
	}
}

func TestFieldsOfEmbeddedCRDs(t *testing.T) {
	runs := fields(parse(t, string(crd.TrainingRuns)))
	for _, path := range []string{"v1alpha1.spec.budget.prices[].model", "v1alpha1.status.attempts[].number",
		"v1alpha1.spec.environments[].sampling.maxTokens"} {
		if !runs[path] {
			t.Errorf("field %s of TrainingRun was not found among %d", path, len(runs))
		}
	}
	if n := len(fields(parse(t, string(crd.RewardEnvironments)))); n < 100 {
		t.Errorf("RewardEnvironment has %d fields, want at least 100", n)
	}
}

// TestDefinitionsFitClientSideApply bounds each definition: client-side apply keeps it in an annotation of at most 256
// KiB. hack/verify.sh runs it.
func TestDefinitionsFitClientSideApply(t *testing.T) {
	const most = 200_000
	for name, data := range map[string][]byte{"rewardenvironments": crd.RewardEnvironments,
		"tinkerendpoints": crd.TinkerEndpoints, "trainingruns": crd.TrainingRuns} {
		compact, err := yaml.YAMLToJSON(data)
		if err != nil {
			t.Fatal(err)
		}
		if len(compact) > most {
			t.Errorf("the definition of %s has %d bytes as compact JSON, at most %d are permitted", name, len(compact), most)
		}
	}
}
