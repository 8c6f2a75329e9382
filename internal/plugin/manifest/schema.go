// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifest reads manifests and changes fields of runs by the schema of their kind.
package manifest

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"sigs.k8s.io/yaml"

	"github.com/tinker-operator/tinker-operator/config/crd"
)

// schema is the schema of a field.
type schema = structuralschema.Structural

// schemaOf returns the schema in the definition of a kind, in the two forms that the API server's code has.
func schemaOf(definition []byte) (*apiextensions.JSONSchemaProps, *schema, error) {
	var parsed apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(definition, &parsed); err != nil {
		return nil, nil, fmt.Errorf("reading the definition of the kind: %w", err)
	}
	var internal apiextensions.CustomResourceValidation
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(
		parsed.Spec.Versions[0].Schema, &internal, nil); err != nil {
		return nil, nil, fmt.Errorf("converting the definition of the kind: %w", err)
	}
	structural, err := structuralschema.NewStructural(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the schema of the kind: %w", err)
	}
	return internal.OpenAPIV3Schema, structural, nil
}

// runSchema returns the schema of the fields of a TrainingRun that people write.
var runSchema = sync.OnceValues(func() (*schema, error) {
	_, run, err := schemaOf(crd.TrainingRuns)
	if err != nil {
		return nil, err
	}
	object := structuralschema.Generic{Type: "object"}
	text := schema{Generic: structuralschema.Generic{Type: "string"}}
	texts := schema{Generic: object, AdditionalProperties: &structuralschema.StructuralOrBool{Structural: &text}}
	metadata := schema{Generic: object, Properties: map[string]schema{"name": text, "labels": texts, "annotations": texts}}
	return &schema{Generic: object, Properties: map[string]schema{"metadata": metadata, "spec": run.Properties["spec"]}},
		nil
})

// keyOf returns the field that distinguishes the entries of a list; empty if none does.
func keyOf(s *schema) string {
	if len(s.XListMapKeys) == 1 {
		return s.XListMapKeys[0]
	}
	return ""
}

// pathsOf returns the path of each field, with [NAME] in the place of the entries of lists and maps.
func pathsOf(s *schema, prefix string) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		path := name
		if prefix != "" {
			path = prefix + "." + name
		}
		child := s.Properties[name]
		all = append(all, path)
		all = append(all, pathsOf(&child, path)...)
		if child.Items != nil && keyOf(&child) != "" {
			all = append(all, pathsOf(child.Items, path+"[NAME]")...)
		}
	}
	return all
}
