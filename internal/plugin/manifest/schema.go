// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifest reads manifests and changes fields of runs by the schema of their kind.
package manifest

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/tinker-operator/tinker-operator/config/crd"
)

// schema is the part of an OpenAPI schema that fields are set by.
type schema struct {
	Type                 string             `json:"type"`
	Properties           map[string]*schema `json:"properties"`
	Items                *schema            `json:"items"`
	AdditionalProperties *schema            `json:"additionalProperties"`
	Enum                 []any              `json:"enum"`
	ListMapKeys          []string           `json:"x-kubernetes-list-map-keys"`
	IntOrString          bool               `json:"x-kubernetes-int-or-string"`
	Preserve             bool               `json:"x-kubernetes-preserve-unknown-fields"`
}

// runSchema returns the schema of a TrainingRun that people write.
var runSchema = sync.OnceValues(func() (*schema, error) {
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPI schema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(crd.TrainingRuns, &definition); err != nil {
		return nil, fmt.Errorf("reading the schema of TrainingRuns: %w", err)
	}
	if len(definition.Spec.Versions) != 1 {
		return nil, fmt.Errorf("reading the schema of TrainingRuns: %d versions were found, want 1", len(definition.Spec.Versions))
	}
	spec := definition.Spec.Versions[0].Schema.OpenAPI.Properties["spec"]
	text := &schema{Type: "string"}
	texts := &schema{Type: "object", AdditionalProperties: text}
	metadata := &schema{Type: "object", Properties: map[string]*schema{"name": text, "labels": texts, "annotations": texts}}
	return &schema{Type: "object", Properties: map[string]*schema{"metadata": metadata, "spec": spec}}, nil
})

// key returns the field that distinguishes the entries of a list; empty if none does.
func (s *schema) key() string {
	if len(s.ListMapKeys) == 1 {
		return s.ListMapKeys[0]
	}
	return ""
}

// paths returns the path of each field, with [NAME] in the place of the entries of lists and maps.
func (s *schema) paths(prefix string) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		path := name
		if prefix != "" {
			path = prefix + "." + name
		}
		child := s.Properties[name]
		all = append(all, path)
		all = append(all, child.paths(path)...)
		if child.Items != nil && child.key() != "" {
			all = append(all, child.Items.paths(path+"[NAME]")...)
		}
	}
	return all
}
