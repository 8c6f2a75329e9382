// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tsdecl

import (
	"fmt"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
)

// enumeration writes the values of an enum, which must be of the type of its schema.
func enumeration(schema *pyjson.Object) (shape, error) {
	values := schema.List("enum")
	if kind, ok := schema.Get("type"); ok {
		name, err := enumType(kind)
		if err != nil {
			return shape{}, err
		}
		for _, v := range values {
			if !isOf(v, name) {
				return shape{}, fmt.Errorf("value %s of an enum is not of type %s", pyjson.JSON(v), name)
			}
		}
	}
	text := union(values, func(v any) string {
		if s, ok := v.(string); ok {
			return `"` + pyjson.Text(s) + `"`
		}
		return pyjson.Str(v)
	})
	return described(schema, "", constant(text)), nil
}

// enumType returns the only type of an enum's values, except null.
func enumType(kind any) (string, error) {
	kinds, ok := kind.([]any)
	if !ok {
		kinds = []any{kind}
	}
	if len(kinds) == 2 {
		kinds = slices.DeleteFunc(slices.Clone(kinds), func(k any) bool { return k == "null" })
	}
	if len(kinds) != 1 {
		return "", fmt.Errorf("type %s of an enum is neither one type nor one and null", pyjson.JSON(kind))
	}
	name, _ := kinds[0].(string)
	return name, nil
}

// isOf reports whether a value has a type. Null has every type.
func isOf(v any, kind string) bool {
	_, isText := v.(string)
	_, isWhole := v.(pyjson.Integer)
	_, isFloat := v.(float64)
	_, isBool := v.(bool)
	switch {
	case v == nil:
		return true
	case kind == "string":
		return isText
	case kind == "number":
		return isWhole || isFloat
	case kind == "integer":
		return isWhole
	case kind == "boolean":
		return isBool
	default:
		return true
	}
}
