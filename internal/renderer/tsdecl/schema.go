// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tsdecl

import "github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"

// value returns a field of a schema, or nil if it does not exist.
func value(schema *pyjson.Object, name string) any {
	v, _ := schema.Get(name)
	return v
}

// object returns a value that is an object, and an empty object for any other value.
func object(v any) *pyjson.Object {
	if o, ok := v.(*pyjson.Object); ok && o != nil {
		return o
	}
	return &pyjson.Object{}
}

// fields returns the fields of an object within a schema.
func fields(schema *pyjson.Object, name string) []pyjson.Field {
	return object(value(schema, name)).Fields
}

// list returns a list within a schema.
func list(schema *pyjson.Object, name string) []any {
	l, _ := value(schema, name).([]any)
	return l
}

// word returns a text within a schema, or "" if it does not exist.
func word(schema *pyjson.Object, name string) string {
	s, _ := value(schema, name).(string)
	return pyjson.Text(s)
}

// required returns the names of the required properties.
func required(schema *pyjson.Object) map[string]bool {
	out := map[string]bool{}
	for _, item := range list(schema, "required") {
		if name, ok := item.(string); ok {
			out[name] = true
		}
	}
	return out
}
