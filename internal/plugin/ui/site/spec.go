// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"encoding/json"
	"fmt"
	"regexp"

	"sigs.k8s.io/yaml"
)

// hidden stands for a value that may be a key.
const hidden = "(hidden)"

// specText returns a spec as YAML. A spec has only the names of Secrets, but values of environment variables and user
// names in addresses may be keys, and are hidden.
func specText(spec any) (string, error) {
	data, err := json.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("encoding the spec: %w", err)
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return "", fmt.Errorf("decoding the spec: %w", err)
	}
	text, err := yaml.Marshal(withoutKeys(value))
	if err != nil {
		return "", fmt.Errorf("encoding the spec as YAML: %w", err)
	}
	return string(text), nil
}

// withoutKeys hides possible keys in a value of JSON.
func withoutKeys(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, child := range v {
			if name == "env" {
				v[name] = withoutValues(child)
				continue
			}
			v[name] = withoutKeys(child)
		}
	case []any:
		for i, child := range v {
			v[i] = withoutKeys(child)
		}
	case string:
		return withoutUser(v)
	}
	return value
}

// withoutValues hides the values of a list of environment variables. The references that some values come from are
// names, and stay.
func withoutValues(value any) any {
	list, _ := value.([]any)
	for _, child := range list {
		if variable, ok := child.(map[string]any); ok && variable["value"] != nil {
			variable["value"] = hidden
		}
	}
	return value
}

var user = regexp.MustCompile(`(?i)\b([a-z][a-z0-9+.-]*://)[^/@\s]*@`)

// withoutUser hides the user name and the password of addresses in a text.
func withoutUser(text string) string { return user.ReplaceAllString(text, "${1}"+hidden+"@") }

var variable = regexp.MustCompile(`\.env\[[^]]*\]\.value$`)

// hide hides the value of a field, by its path in a spec, if it may be a key.
func hide(path, value string) string {
	if value != "" && variable.MatchString(path) {
		return hidden
	}
	return withoutUser(value)
}
