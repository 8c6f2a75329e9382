// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tracking

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// The limits of MLflow for the name and the value of a parameter, in bytes.
const (
	maxParamName  = 250
	maxParamValue = 6000
)

// mlflowInvalid are the characters that MLflow does not permit in names of metrics and parameters.
var mlflowInvalid = regexp.MustCompile(`[^/\w.\- :]`)

// mlflowName returns the name of a metric or parameter as MLflow permits it: pass_at_1 for pass@1.
func mlflowName(name string) string {
	return mlflowInvalid.ReplaceAllString(strings.ReplaceAll(name, "@", "_at_"), "_")
}

// mlflowPairs returns entries in the order of their keys.
func mlflowPairs(entries map[string]string) []mlflowPair {
	pairs := make([]mlflowPair, 0, len(entries))
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		pairs = append(pairs, mlflowPair{key, entries[key]})
	}
	return pairs
}

// paramsOf returns the values of a config by their dotted paths. If each element of a list has a name, the names are
// part of the paths; any other list is one value.
func paramsOf(config map[string]any) map[string]string {
	params := map[string]string{}
	var add func(path string, value any)
	add = func(path string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for name, field := range value {
				add(path+"."+name, field)
			}
			return
		case []any:
			if named := byName(value); named != nil {
				add(path, named)
				return
			}
		}
		name, text := mlflowName(strings.TrimPrefix(path, ".")), textOf(value)
		params[name[:min(len(name), maxParamName)]] = strings.ToValidUTF8(text[:min(len(text), maxParamValue)], "")
	}
	for name, value := range config {
		add(name, value)
	}
	return params
}

// byName returns the elements of a list by their names; nil unless each element has a name.
func byName(list []any) map[string]any {
	named := map[string]any{}
	for _, element := range list {
		fields, _ := element.(map[string]any)
		name, ok := fields["name"].(string)
		if !ok {
			return nil
		}
		named[name] = fields
	}
	if len(named) == 0 {
		return nil
	}
	return named
}

// textOf returns a text as it is, and any other value as JSON.
func textOf(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	data, err := json.Marshal(value)
	if err != nil {
		panic("tracking: " + err.Error()) // It was decoded from JSON.
	}
	return string(data)
}
