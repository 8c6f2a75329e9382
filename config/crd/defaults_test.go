// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// untoldDefault matches a description with a default that kubectl get -o yaml does not show. "Defaults to" is for
// values that depend on another field, and "If it is absent" is for fields that stay without a value.
var untoldDefault = regexp.MustCompile(`(?i)without (it|them)[ ,]|unless (it is )?given|by default`)

// defaultsTo finds the sentence about a default that depends on another field.
var defaultsTo = regexp.MustCompile(`Defaults to ((?s).*?)(\. |\.$|$)`)

// TestDefaultsAreInTheSchemaOrNameAField walks each field of spec of a TrainingRun. A static default is in the schema;
// the description of every other default names the field on which it depends.
func TestDefaultsAreInTheSchemaOrNameAField(t *testing.T) {
	var run apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(TrainingRuns, &run); err != nil {
		t.Fatal(err)
	}
	spec := run.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	fields := map[string]bool{"metadata": true} // metadata is a field of each object.
	walk("spec", spec, func(path string, _ apiextensionsv1.JSONSchemaProps, _ bool) {
		fields[path[strings.LastIndexByte(path, '.')+1:]] = true
	})
	if len(fields) < 150 {
		t.Fatalf("the schema has %d names of fields, want at least 150", len(fields))
	}
	walk("spec", spec, func(path string, field apiextensionsv1.JSONSchemaProps, required bool) {
		err := check(field, required, fields)
		if strings.Contains(path, "[]") {
			err = checkInList(field)
		}
		if err != nil {
			t.Errorf("%s: %v: %s", path, err, field.Description)
		}
	})
}

func TestDefaultsOutsideTheSchemaAreFound(t *testing.T) {
	for description, ok := range map[string]bool{
		"retries is a number; without it, 3.":               false,
		"onLimit is a policy; Grade unless given.":          false,
		"retries is a number. Defaults to 3.":               false,
		"scale divides. Defaults to algorithm.scale.":       true,
		"take is a number. If it is absent, all are taken.": true,
	} {
		field := apiextensionsv1.JSONSchemaProps{Type: "string", Description: description}
		if err := check(field, false, map[string]bool{"scale": true}); (err == nil) != ok {
			t.Errorf("%q: the error is %v", description, err)
		}
	}
}

// checkInList requires that no field of an item of a list has a default: kubectl apply and Argo CD compare a list as a
// whole, and would see a difference from the manifest at each apply.
func checkInList(field apiextensionsv1.JSONSchemaProps) error {
	switch {
	case field.Default != nil:
		return fmt.Errorf("an item of a list has the default %s in the schema: set it in the code", field.Default.Raw)
	case untoldDefault.MatchString(field.Description):
		return fmt.Errorf("say Defaults to, or If it is absent")
	}
	return nil
}

func check(field apiextensionsv1.JSONSchemaProps, required bool, fields map[string]bool) error {
	told := defaultsTo.FindStringSubmatch(field.Description)
	switch {
	case field.Default != nil && (required || told != nil):
		return fmt.Errorf("the field has a default in the schema, and is required or describes another")
	case field.Default != nil || field.Type == "object":
		return nil
	case untoldDefault.MatchString(field.Description):
		return fmt.Errorf("put the default into the schema, or name the field on which it depends")
	case told == nil:
		return nil
	}
	for word := range strings.FieldsFuncSeq(told[1], func(r rune) bool { return strings.ContainsRune(" .,[]()\n", r) }) {
		if fields[word] {
			return nil
		}
	}
	return fmt.Errorf("the default is static: put it into the schema")
}

// walk visits the fields that this project describes. It does not descend into the Kubernetes types of podOverrides.
func walk(path string, s apiextensionsv1.JSONSchemaProps,
	visit func(path string, field apiextensionsv1.JSONSchemaProps, required bool)) {
	for name, field := range s.Properties {
		required := false
		for _, other := range s.Required {
			required = required || other == name
		}
		below := path + "." + name
		visit(below, field, required)
		if path == "spec.podOverrides[]" && name != "securityContext" {
			continue
		}
		walk(below, field, visit)
		if field.Items != nil && field.Items.Schema != nil {
			walk(below+"[]", *field.Items.Schema, visit)
		}
	}
}
