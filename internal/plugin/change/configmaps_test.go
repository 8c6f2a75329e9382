// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/manifest"
	"github.com/tinker-operator/tinker-operator/internal/plugin/try"
)

// TestPlanReadsConfigMapsOfTheNamespace plans a file whose RewardEnvironment names a ConfigMap that only the namespace
// has.
func TestPlanReadsConfigMapsOfTheNamespace(t *testing.T) {
	all, err := manifest.ParseAll([]byte(sample(t)))
	if err != nil {
		t.Fatal(err)
	}
	var text string
	for _, object := range all.Others {
		text, _, _ = unstructured.NestedString(object.Object, "data", "rows.jsonl")
	}
	reader := fake.NewClientBuilder().WithObjects(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "own-data"}, Data: map[string]string{"rows.jsonl": text},
	}).Build()
	read := func(namespace string, given []*unstructured.Unstructured, data ...string) []*unstructured.Unstructured {
		found, err := namespaceConfigMaps(t.Context(), reader, namespace, all.Environments, given, data)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	for name, found := range map[string][]*unstructured.Unstructured{
		"a ConfigMap of the file": read("team", all.Others), "one of --data": read("team", nil, "own-data=."),
		"one that no one has": read("other", nil),
	} {
		if len(found) != 0 {
			t.Errorf("%s: %d ConfigMaps are read, want none", name, len(found))
		}
	}
	all.Others = read("team", nil)
	local := try.Local{Run: all.Runs[0], Beside: all}
	probed, err := local.Probe(t.Context(), cli.IO{Getenv: func(string) string { return "" }, Stderr: io.Discard},
		[]string{"own-data"})
	if err != nil {
		t.Fatal(err)
	}
	defer probed.Close()
	if tasks := probed.Pins["own-data"].Splits["test"]; tasks != 128 || !strings.Contains(text, "question") {
		t.Errorf("the split test has %d tasks, want 128", tasks)
	}
}
