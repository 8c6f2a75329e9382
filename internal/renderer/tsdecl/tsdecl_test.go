// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tsdecl

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
)

func parameters(t *testing.T, text string) *pyjson.Object {
	t.Helper()
	value, err := pyjson.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return pyjson.ObjectOf(value)
}

// TestType compares texts with those of the reference for the same schemas.
func TestType(t *testing.T) {
	cases := map[string]struct{ schema, want string }{
		"no parameters": {schema: `{"type": "object", "properties": {}}`, want: "// D\ntype f = () => any;"},
		"no schema":     {schema: `{}`, want: "// D\ntype f = () => any;"},
		"required or not": {
			schema: `{"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"]}`,
			want:   "// D\ntype f = (_:\n{\na: string,\nb?: number,\n}) => any;"},
		"comments and defaults": {
			schema: `{"type": "object", "description": "all", "properties": {"a": {"title": "T", "description": "d", "examples": ["x", 1], "type": "boolean", "default": true}}}`,
			want: "// D\ntype f = (_: // all\n{\n// T\n// \n// d\n// Examples:\n// - \"x\"\n// - 1\na?: boolean, // default: " +
				"true\n}) => any;"},
		"types of types": {
			schema: `{"type": "object", "properties": {"a": {"type": "array", "items": {"type": "number"}}, "b": {"type": ["string", "null"]}, "c": {"anyOf": [{"type": "number"}, {"type": "null"}]},` +
				`"d": {"oneOf": [{"type": "string", "enum": ["x", "é"]}]}, "e": {"type": "object", "properties": {"g": {"type": "string"}}, "required": ["g"]}, "h": {}, "i": {"type": "string", "nullable": true}, "j": {"type": "string", "enum": ["k"], "nullable": true}, "l": {"type": "object"}}}`,
			want: "// D\ntype f = (_:\n{\na?: number[],\nb?: string | any,\nc?: number | any,\nd?: \"x\" | \"\\u00e9\",\ne?: " +
				"{ g: string },\nh?: any,\ni?: string | null,\nj?: \"k\",\nl?: {  },\n}) => any;"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Type("f", "D", parameters(t, tc.schema))); diff != "" {
				t.Errorf("Type (-want +got):\n%s", diff)
			}
		})
	}
	if got := Type("f", "", &pyjson.Object{}); got != "type f = () => any;" {
		t.Errorf("Type without a description = %q", got)
	}
}

func TestInterface(t *testing.T) {
	cases := map[string]struct{ schema, want string }{
		"no schema": {schema: `{}`, want: "// D\n\n// E\ntype f = (_: {}) => any;"},
		"required first, then by name": {
			schema: `{"type": "object", "properties": {"c": {"type": "string"}, "b": {"type": "integer"}, "a": {"type": "boolean"}}, "required": ["c"]}`,
			want:   "// D\n\n// E\ntype f = (_: {\n  c: string,\n  a?: boolean,\n  b?: number\n}) => any;"},
		"limits and defaults": {
			schema: `{"type": "object", "properties": {"a": {"type": "integer", "minimum": 1, "maximum": 50, "default": 3}, "b": {"type": "string", "pattern": "^x", "description": "two\n\nlines", "default": "é"},` +
				`"c": {"type": "boolean", "default": false}, "d": {"type": "array", "items": {"type": "string", "maxLength": 2}, "minItems": 1, "default": []}}}`,
			want: "// D\n\n// E\ntype f = (_: {\n  // maximum: 50, minimum: 1\n  // Default: 3\n  a?: number,\n  // two\n\n  " +
				"// lines\n  // pattern: ^x\n  // Default: \"é\"\n  b?: string,\n  // Default: False\n  c?: boolean,\n" +
				"  // minItems: 1\n  // Default: []\n  d?: Array<\n    // maxLength: 2\n    string\n  >\n}) => any;"},
		"types of types": {
			schema: `{"type": "object", "properties": {"a": {"anyOf": [{"type": "number"}, {"type": "null"}]}, "b": {"type": ["string", "null", "array"]}, "c": {"enum": ["x", 1, null, true]}, "d": {"type": "array"}, "e": true, "g": false, "h": {}},` +
				` "additionalProperties": false}`,
			want: "// D\n\n// E\ntype f = (_: {\n  a?: number | null,\n  b?: string | null | Array<any>,\n  c?: \"x\" | 1 | " +
				"None | True,\n  d?: Array<any>,\n  e?: any,\n  g?: null,\n  h?: any,\n  [k: string]: never\n}) => any;"},
		"objects within objects": {
			schema: `{"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": {"type": "number"}}}}`,
			want:   "// D\n\n// E\ntype f = (_: {\n  a?: {\n    b?: string,\n    [k: string]: number\n  }\n}) => any;"},
		"definitions": {
			schema: `{"type": "object", "$defs": {"P": {"type": "object", "description": "a point", "properties": {"x": {"type": "number"}}}}, "properties": {"p": {"$ref": "#/$defs/P"}}}`,
			want:   "// a point\ninterface P {\n  x?: number\n}\n// D\n\n// E\ntype f = (_: {\n  p?: P\n}) => any;"},
		"a schema that refers to itself": {
			schema: `{"type": "object", "properties": {"z": {"type": "string"}, "next": {"$ref": "#", "description": "and so on"}}}`,
			want: "interface parameters {\n  z?: string,\n  // and so on\n  next?: parameters\n}\n// D\n\n// E\ntype f = (_: " +
				"parameters) => any;"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Interface("f", "D\n\nE", parameters(t, tc.schema))
			if err != nil {
				t.Fatalf("Interface: %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Interface (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInterfaceErrors(t *testing.T) {
	cases := map[string]struct{ property, want string }{
		"a reference elsewhere":     {property: `{"$ref": "other.json"}`, want: "other.json"},
		"a reference to nothing":    {property: `{"$ref": "#/$defs/X"}`, want: "leads nowhere"},
		"a schema that says little": {property: `{"title": "x"}`, want: "neither type"},
		"an unknown type":           {property: `{"type": ["thing"]}`, want: "thing"},
		"no schema":                 {property: `3`, want: "3 is not a schema"},
		"a value of another type":   {property: `{"type": "string", "enum": ["a", 1]}`, want: "not of type string"},
		"too many types":            {property: `{"type": ["string", "number", "null"], "enum": []}`, want: "of an enum"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Interface("f", "", parameters(t, `{"properties": {"a": `+tc.property+`}}`))
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), `property "a"`) {
				t.Errorf("Interface: err = %v, want one that says %q", err, tc.want)
			}
		})
	}
}
