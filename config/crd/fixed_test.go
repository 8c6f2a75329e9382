// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// changeable names the settings of spec.model and spec.algorithm that a run may change after its first step.
var changeable = map[string]bool{
	"model.tokenizer.tokenSecretKeyRef": true, // A token expires. The tokenizer's digest stays fixed.
}

// TestTransitionRulesNameEachSetting checks that each field of spec.model and spec.algorithm is in one of the CEL
// rules, which compare these sections field by field. A new field that no rule names could change between two steps of
// a run.
func TestTransitionRulesNameEachSetting(t *testing.T) {
	var run apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(TrainingRuns, &run); err != nil {
		t.Fatal(err)
	}
	root := run.Spec.Versions[0].Schema.OpenAPIV3Schema
	var rules strings.Builder
	for _, rule := range root.XValidations {
		if strings.Contains(rule.Rule, "oldSelf") {
			fmt.Fprintln(&rules, rule.Rule)
		}
	}
	for _, section := range []string{"model", "algorithm"} {
		missing, fields := unfixed(rules.String(), section, root.Properties["spec"].Properties[section])
		for _, path := range missing {
			t.Errorf("spec.%s is in no rule that compares it with oldSelf: add it to the rule of spec.%s in "+
				"api/v1alpha1/trainingrun_types.go, or to changeable with the reason", path, section)
		}
		if fields < 3 {
			t.Errorf("spec.%s has %d fields, want at least 3", section, fields)
		}
	}
}

func TestUnfixedSettingsAreFound(t *testing.T) {
	object := func(names ...string) apiextensionsv1.JSONSchemaProps {
		properties := map[string]apiextensionsv1.JSONSchemaProps{}
		for _, name := range names {
			properties[name] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		}
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties}
	}
	rule := "has(self.spec.model.rank) == has(oldSelf.spec.model.rank) && self.spec.model.name == oldSelf.spec.model.name"
	schema := object("name", "rank", "seed")
	missing, fields := unfixed(rule, "model", schema)
	if got := strings.Join(missing, " "); got != "model.rank model.seed" && got != "model.seed model.rank" || fields != 3 {
		t.Errorf("the fields without a rule are %q of %d, want model.rank and model.seed of 3", got, fields)
	}
	nested := object("name")
	nested.Properties["tokenizer"] = object("revision")
	if missing, _ := unfixed(rule, "model", nested); len(missing) != 1 || missing[0] != "model.tokenizer.revision" {
		t.Errorf("the fields without a rule are %q, want model.tokenizer.revision", missing)
	}
}

// unfixed returns the paths of the fields below path that no rule compares with oldSelf, as a whole or field by field,
// and the number of fields directly below path.
func unfixed(rules, path string, schema apiextensionsv1.JSONSchemaProps) (missing []string, fields int) {
	for name, field := range schema.Properties {
		below := path + "." + name
		switch {
		case strings.Contains(rules, fmt.Sprintf("self.spec.%[1]s == oldSelf.spec.%[1]s", below)), changeable[below]:
		case len(field.Properties) > 0:
			nested, _ := unfixed(rules, below, field)
			missing = append(missing, nested...)
		default:
			missing = append(missing, below)
		}
	}
	return missing, len(schema.Properties)
}
