// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package tsdecl declares tools in two dialects of TypeScript that chat formats use: the dialect of gpt-oss (Type) and
// the dialect of Kimi K2.5 (Interface). They have little in common except the language.
package tsdecl

import (
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
)

// Type declares a tool for gpt-oss. parameters is a JSON schema.
func Type(name, description string, parameters *pyjson.Object) string {
	text := "type " + name + " = " + parameterBlock(parameters) + " => any;"
	if description == "" {
		return text
	}
	return "// " + description + "\n" + text
}

// parameterBlock writes each parameter on a line, or () if there are no parameters.
func parameterBlock(schema *pyjson.Object) string {
	properties := fields(schema, "properties")
	if schema.Word("type") != "object" || len(properties) == 0 {
		return "()"
	}
	lines := []string{"(_:"}
	if description := schema.Word("description"); description != "" {
		lines[0] += " // " + description
	}
	lines = append(lines, "{")
	required := required(schema)
	for _, p := range properties {
		property := pyjson.ObjectOf(p.Value)
		for _, comment := range comments(property) {
			lines = append(lines, "// "+comment)
		}
		line := member(p, required) + ","
		if value, ok := property.Get("default"); ok {
			line += " // default: " + pyjson.JSON(value)
		}
		lines = append(lines, line)
	}
	return strings.Join(append(lines, "})"), "\n")
}

// member writes the name and the type of a property.
func member(p pyjson.Field, required map[string]bool) string {
	mark := "?"
	if required[p.Name] {
		mark = ""
	}
	return pyjson.Text(p.Name) + mark + ": " + typeOf(pyjson.ObjectOf(p.Value))
}

// comments returns a property's title, description and examples.
func comments(schema *pyjson.Object) []string {
	var lines []string
	if title := schema.Word("title"); title != "" {
		lines = append(lines, title, "")
	}
	if description := schema.Word("description"); description != "" {
		lines = append(lines, description)
	}
	if examples := schema.List("examples"); len(examples) > 0 {
		lines = append(lines, "Examples:")
		for _, example := range examples {
			lines = append(lines, "- "+pyjson.JSON(example))
		}
	}
	return lines
}

// scalars are the types with a name of their own. All others are any.
var scalars = map[string]string{"string": "string", "number": "number", "integer": "number", "boolean": "boolean"}

func typeOf(schema *pyjson.Object) string {
	for _, name := range []string{"oneOf", "anyOf"} {
		if _, ok := schema.Get(name); ok {
			return union(schema.List(name), func(item any) string { return typeOf(pyjson.ObjectOf(item)) })
		}
	}
	if kinds, ok := schema.Get("type"); ok {
		if several, ok := kinds.([]any); ok {
			return union(several, func(kind any) string {
				return typeOf(&pyjson.Object{Fields: []pyjson.Field{{Name: "type", Value: kind}}})
			})
		}
	}
	base, plain := single(schema)
	if nullable, _ := schema.Get("nullable"); nullable == true && !plain {
		return base + " | null"
	}
	return base
}

// single writes a schema of one type. plain means that the schema is an enumeration, which lists null itself.
func single(schema *pyjson.Object) (base string, plain bool) {
	kind := schema.Word("type")
	switch kind {
	case "array":
		return typeOf(pyjson.ObjectOf(schema.Value("items"))) + "[]", false
	case "object":
		return inline(schema), false
	case "string":
		if _, ok := schema.Get("enum"); ok {
			return union(schema.List("enum"), pyjson.JSON), true
		}
	}
	if base, ok := scalars[kind]; ok {
		return base, false
	}
	return "any", false
}

// inline writes an object on one line.
func inline(schema *pyjson.Object) string {
	properties := fields(schema, "properties")
	required := required(schema)
	members := make([]string, len(properties))
	for i, p := range properties {
		members[i] = member(p, required)
	}
	return "{ " + strings.Join(members, ", ") + " }"
}

func union(items []any, write func(any) string) string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = write(item)
	}
	return strings.Join(texts, " | ")
}
