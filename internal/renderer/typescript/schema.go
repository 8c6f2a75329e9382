// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package typescript

import "github.com/tinker-operator/tinker-operator/internal/renderer/python"

// value gives a field of a schema; nil when there is none.
func value(schema *python.Object, name string) any {
	v, _ := schema.Get(name)
	return v
}

// object takes a value for an object; one that is none has no fields.
func object(v any) *python.Object {
	if o, ok := v.(*python.Object); ok && o != nil {
		return o
	}
	return &python.Object{}
}

// fields gives those of an object within a schema.
func fields(schema *python.Object, name string) []python.Field {
	return object(value(schema, name)).Fields
}

// list gives a list within a schema.
func list(schema *python.Object, name string) []any {
	l, _ := value(schema, name).([]any)
	return l
}

// word gives a text within a schema; "" when there is none.
func word(schema *python.Object, name string) string {
	s, _ := value(schema, name).(string)
	return python.Text(s)
}

// required gives the names of the properties that have to be there.
func required(schema *python.Object) map[string]bool {
	out := map[string]bool{}
	for _, item := range list(schema, "required") {
		if name, ok := item.(string); ok {
			out[name] = true
		}
	}
	return out
}
