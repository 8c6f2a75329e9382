// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Command chartschema writes the definitions of values.schema.json: the fields of podOverrides whose types are
// Kubernetes' own, from the CRD of TrainingRuns. A definition permits no field that the CRD does not have, so that Helm
// refuses a typing error which the API server would ignore. All before the definitions is written by hand.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// fields are the fields of podOverrides that become definitions of their names.
var fields = []string{"affinity", "dnsConfig", "env", "envFrom", "resources", "tolerations",
	"topologySpreadConstraints", "volumeMounts", "volumes"}

// keywords are the keywords of a schema that a definition keeps. The rest are descriptions, and extensions of
// Kubernetes.
var keywords = []string{"type", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems",
	"maxItems", "required"}

const (
	// quantity is a quantity of a resource. Kubernetes takes numbers, too.
	quantity = `^([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?$`
	// resource is the name of a resource of containers: one of Kubernetes' own, or an extended one, which has a domain.
	resource = `^(cpu|memory|ephemeral-storage|hugepages-[0-9]+[KMGTPE]i` +
		`|[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)$`
)

// marker is the line with which the definitions begin. They are the last of the file.
const marker = "\n  \"definitions\": "

type schema = map[string]any

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: chartschema CRD VALUES-SCHEMA")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "chartschema:", err)
		os.Exit(1)
	}
}

func run(crdName, schemaName string) error {
	properties, err := podOverrides(crdName)
	if err != nil {
		return err
	}
	definitions := schema{
		"quantity":      schema{"type": []string{"number", "string"}, "pattern": quantity, "minimum": 0},
		"resources":     resources(),
		"labelSelector": nil,
	}
	for _, name := range fields {
		found, ok := properties[name].(schema)
		if !ok {
			return fmt.Errorf("podOverrides of %s has no field %s", crdName, name)
		}
		if definitions[name] == nil {
			definitions[name] = closed(found)
		}
	}
	constraint := properties["topologySpreadConstraints"].(schema)["items"].(schema)["properties"].(schema)
	definitions["labelSelector"] = closed(constraint["labelSelector"].(schema))
	return replace(schemaName, definitions)
}

// podOverrides returns the properties of podOverrides in a CRD.
func podOverrides(name string) (schema, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	type node struct {
		Properties schema `json:"properties"`
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema struct {
						Properties struct {
							Spec struct {
								Properties struct {
									PodOverrides struct {
										Items node `json:"items"`
									} `json:"podOverrides"`
								} `json:"properties"`
							} `json:"spec"`
						} `json:"properties"`
					} `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(data, &crd); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", name, err)
	}
	if len(crd.Spec.Versions) == 0 {
		return nil, fmt.Errorf("%s has no version", name)
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties.Spec.Properties.PodOverrides.Items.Properties, nil
}

// resources are requests and limits. Claims need resourceClaims, which no pod of the chart has.
func resources() schema {
	list := schema{"type": "object", "additionalProperties": schema{"$ref": "#/definitions/quantity"},
		"propertyNames": schema{"pattern": resource}}
	return schema{"type": "object", "additionalProperties": false,
		"properties": schema{"requests": list, "limits": list}}
}

// closed returns a schema that permits no properties besides those that it names.
func closed(open schema) schema {
	made := schema{}
	if open["x-kubernetes-int-or-string"] == true {
		if _, is := open["pattern"]; is {
			return schema{"$ref": "#/definitions/quantity"}
		}
		return schema{"type": []string{"integer", "string"}}
	}
	for _, keyword := range keywords {
		if value, ok := open[keyword]; ok {
			made[keyword] = value
		}
	}
	if items, ok := open["items"].(schema); ok {
		made["items"] = closed(items)
	}
	if values, ok := open["additionalProperties"].(schema); ok {
		made["additionalProperties"] = closed(values)
	}
	if properties, ok := open["properties"].(schema); ok {
		named := schema{}
		for name, property := range properties {
			named[name] = closed(property.(schema))
		}
		made["properties"], made["additionalProperties"] = named, false
	}
	return made
}

// replace replaces the definitions of a file.
func replace(name string, definitions schema) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	start, _, found := bytes.Cut(data, []byte(marker))
	if !found {
		return errors.New(name + " has no definitions")
	}
	encoded, err := json.Marshal(definitions)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	out.Write(start)
	out.WriteString(marker)
	if err := json.Indent(&out, encoded, "  ", "  "); err != nil {
		return err
	}
	out.WriteString("\n}\n")
	return os.WriteFile(name, out.Bytes(), 0o644)
}
