// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestColumnsOfMetrics prints runs with the API server's convertor. The columns select entries of status.metrics by
// name.
func TestColumnsOfMetrics(t *testing.T) {
	data, err := os.ReadFile("bases/rl.tinker-operator.dev_trainingruns.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &crd); err != nil {
		t.Fatal(err)
	}
	convertor, err := tableconvertor.New(crd.Spec.Versions[0].AdditionalPrinterColumns)
	if err != nil {
		t.Fatal(err)
	}
	for name, status := range map[string]map[string]any{
		"with metrics": {"metrics": []any{map[string]any{"name": "loss:sum", "value": 3.0},
			map[string]any{"name": "env/all/reward/total", "value": 0.7125},
			map[string]any{"name": "test/pass@1", "value": 0.5}}},
		"without": {},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"},
			"status": status}}
		table, err := convertor.ConvertToTable(t.Context(), object, nil)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]any{}
		for i, column := range table.ColumnDefinitions {
			found[column.Name] = table.Rows[0].Cells[i]
		}
		want := []any{0.7125, 0.5}
		if name == "without" {
			want = []any{nil, nil}
		}
		if diff := cmp.Diff(want, []any{found["Reward"], found["Pass@1"]}); diff != "" {
			t.Errorf("%s: columns (-want +got):\n%s", name, diff)
		}
	}
}
