// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tsdecl

import "github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"

// fields returns the fields of an object within a schema.
func fields(schema *pyjson.Object, name string) []pyjson.Field {
	return pyjson.ObjectOf(schema.Value(name)).Fields
}

// required returns the names of the required properties.
func required(schema *pyjson.Object) map[string]bool {
	out := map[string]bool{}
	for _, item := range schema.List("required") {
		if name, ok := item.(string); ok {
			out[name] = true
		}
	}
	return out
}
