// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tsdecl

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/renderer/pyjson"
)

const step = "  "

// Interface declares a tool for Kimi K2.5. parameters is a JSON schema; it is an error if the
// dialect cannot express it.
func Interface(name, description string, parameters *pyjson.Object) (string, error) {
	s := &scope{definitions: &pyjson.Object{}}
	root, err := s.object(parameters)
	if err != nil {
		return "", err
	}
	var lines []string
	argument := root.write("")
	if s.selfReferring {
		argument = "parameters"
		lines = append(lines, "interface parameters "+root.body())
	}
	for _, d := range slices.Clone(s.definitions.Fields) {
		definition, err := s.parse(d.Value)
		if err != nil {
			return "", fmt.Errorf("definition %q: %w", d.Name, err)
		}
		if definition.description != "" {
			lines = append(lines, comment(definition.description, ""))
		}
		lines = append(lines, "interface "+pyjson.Text(d.Name)+" "+definition.write(""))
	}
	if description != "" {
		lines = append(lines, comment(description, ""))
	}
	return strings.Join(append(lines, "type "+name+" = (_: "+argument+") => any;"), "\n"), nil
}

// scope has the definitions that a tool's schemas refer to.
type scope struct {
	definitions   *pyjson.Object
	selfReferring bool
}

// shape is a schema that can be written.
type shape struct {
	description string
	// limits are the limits on the value, in their order.
	limits []pyjson.Field
	write  func(indent string) string
	// members are the members of an object.
	members []func(indent string) string
}

// body writes an object's members for an interface, in their order.
func (s shape) body() string {
	if len(s.members) == 0 {
		return "{}"
	}
	return "{\n" + s.list(step) + "\n}"
}

func (s shape) list(indent string) string {
	texts := make([]string, len(s.members))
	for i, member := range s.members {
		texts[i] = member(indent)
	}
	return strings.Join(texts, ",\n")
}

// doc writes the comments above a value.
func (s shape) doc(indent string) string {
	text := ""
	if s.description != "" {
		text = comment(s.description, indent) + "\n"
	}
	if len(s.limits) == 0 {
		return text
	}
	limits := make([]string, len(s.limits))
	for i, l := range s.limits {
		limits[i] = l.Name + ": " + pyjson.Str(l.Value)
	}
	return text + indent + "// " + strings.Join(limits, ", ") + "\n"
}

// comment writes each line of text as a comment. Empty lines stay empty.
func comment(text, indent string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = indent + "// " + line
		}
	}
	return strings.Join(lines, "\n")
}

// limited are the fields of a schema that are written as limits, by type.
var limited = map[string][]string{
	"string": {"maxLength", "minLength", "pattern"}, "number": {"maximum", "minimum"}, "integer": {"maximum", "minimum"},
	"array": {"maxItems", "minItems"},
}

func constant(text string) shape { return shape{write: func(string) string { return text }} }

// described returns a shape with the description and the limits of its schema.
func described(schema *pyjson.Object, kind string, out shape) shape {
	out.description = schema.Word("description")
	for _, name := range limited[kind] {
		if v, ok := schema.Get(name); ok {
			out.limits = append(out.limits, pyjson.Field{Name: name, Value: v})
		}
	}
	return out
}

func (s *scope) parse(v any) (shape, error) {
	switch v {
	case true:
		return constant("any"), nil
	case false:
		return constant("null"), nil
	}
	schema, ok := v.(*pyjson.Object)
	if !ok {
		return shape{}, fmt.Errorf("%s is not a schema", pyjson.JSON(v))
	}
	for _, form := range []struct {
		field string
		parse func(*pyjson.Object) (shape, error)
	}{{"$ref", s.reference}, {"anyOf", s.anyOf}, {"enum", enumeration}, {"type", s.typed}} {
		if _, ok := schema.Get(form.field); ok {
			return form.parse(schema)
		}
	}
	if len(schema.Fields) > 0 {
		return shape{}, fmt.Errorf("schema %s has neither type, enum, anyOf nor $ref", pyjson.JSON(schema))
	}
	return constant("any"), nil
}

func (s *scope) reference(schema *pyjson.Object) (shape, error) {
	ref := schema.Word("$ref")
	if ref == "#" {
		s.selfReferring = true
		return described(schema, "", constant("parameters")), nil
	}
	name, ok := strings.CutPrefix(ref, "#/$defs/")
	if !ok {
		return shape{}, fmt.Errorf("reference %q is neither # nor of the form #/$defs/name", ref)
	}
	name = name[strings.LastIndex(name, "/")+1:]
	if _, ok := s.definitions.Get(name); !ok {
		return shape{}, fmt.Errorf("reference %q leads nowhere", ref)
	}
	return described(schema, "", constant(name)), nil
}

func (s *scope) anyOf(schema *pyjson.Object) (shape, error) {
	var shapes []shape
	for _, item := range schema.List("anyOf") {
		one, err := s.parse(item)
		if err != nil {
			return shape{}, err
		}
		shapes = append(shapes, one)
	}
	write := func(indent string) string {
		texts := make([]string, len(shapes))
		for i, one := range shapes {
			texts[i] = one.write(indent)
		}
		return strings.Join(texts, " | ")
	}
	return described(schema, "", shape{write: write}), nil
}

// several are the texts of the types in a list of types.
var several = map[string]string{"string": "string", "number": "number", "integer": "number", "boolean": "boolean",
	"null":   "null",
	"object": "{}", "array": "Array<any>"}

func (s *scope) typed(schema *pyjson.Object) (shape, error) {
	if kinds, ok := schema.Value("type").([]any); ok {
		texts := make([]string, len(kinds))
		for i, kind := range kinds {
			name, _ := kind.(string)
			if texts[i], ok = several[name]; !ok {
				return shape{}, fmt.Errorf("%s is not a known type", pyjson.JSON(kind))
			}
		}
		return described(schema, "", constant(strings.Join(texts, " | "))), nil
	}
	switch kind := schema.Word("type"); kind {
	case "object":
		return s.object(schema)
	case "array":
		return s.array(schema)
	case "integer":
		return described(schema, kind, constant("number")), nil
	default:
		return described(schema, kind, constant(kind)), nil
	}
}

func (s *scope) array(schema *pyjson.Object) (shape, error) {
	item := constant("any")
	if items := schema.Value("items"); items != nil && items != false &&
		(items == true || len(pyjson.ObjectOf(items).Fields) > 0) {
		var err error
		if item, err = s.parse(items); err != nil {
			return shape{}, err
		}
	}
	return described(schema, "array", shape{write: func(indent string) string {
		inner := indent + step
		if doc := item.doc(inner); doc != "" {
			return "Array<\n" + doc + inner + item.write(inner) + "\n" + indent + ">"
		}
		return "Array<" + item.write(indent) + ">"
	}}), nil
}

// property is a property of an object.
type property struct {
	name     string
	optional bool
	shape    shape
	fallback any
}

func (p property) write(indent string) string {
	text := p.shape.doc(indent)
	if p.fallback != nil {
		text += indent + "// Default: " + fallbackText(p.fallback) + "\n"
	}
	mark := ""
	if p.optional {
		mark = "?"
	}
	return text + indent + pyjson.Text(p.name) + mark + ": " + p.shape.write(indent)
}

func fallbackText(v any) string {
	switch v.(type) {
	case bool, float64, pyjson.Integer:
		return pyjson.Str(v)
	default:
		return pyjson.Style{Unicode: true}.JSON(v)
	}
}

func (s *scope) object(schema *pyjson.Object) (shape, error) {
	for _, d := range fields(schema, "$defs") {
		s.definitions.Set(d.Name, d.Value)
	}
	others, err := s.others(schema)
	if err != nil {
		return shape{}, err
	}
	required := required(schema)
	var properties []property
	for _, f := range fields(schema, "properties") {
		p := property{name: f.Name, optional: !required[f.Name], fallback: pyjson.ObjectOf(f.Value).Value("default")}
		if p.shape, err = s.parse(f.Value); err != nil {
			return shape{}, fmt.Errorf("property %q: %w", f.Name, err)
		}
		properties = append(properties, p)
	}
	out := shape{description: schema.Word("description")}
	for _, p := range properties {
		out.members = append(out.members, p.write)
	}
	out.write = func(indent string) string { return block(properties, others, indent) }
	return out, nil
}

// others writes the type of additional properties of an object. It returns nil if the schema does not mention them.
func (s *scope) others(schema *pyjson.Object) (*shape, error) {
	v, ok := schema.Get("additionalProperties")
	if !ok || v == nil {
		return nil, nil
	}
	if v == false {
		never := constant("never")
		return &never, nil
	}
	other, err := s.parse(v)
	return &other, err
}

// block writes an object: required properties first, then by name.
func block(properties []property, others *shape, indent string) string {
	inner := indent + step
	sorted := slices.SortedStableFunc(slices.Values(properties), func(a, b property) int {
		if a.optional != b.optional {
			return map[bool]int{false: -1, true: 1}[a.optional]
		}
		return cmp.Compare(a.name, b.name)
	})
	lines := make([]string, len(sorted))
	for i, p := range sorted {
		lines[i] = p.write(inner)
	}
	if others != nil {
		lines = append(lines, inner+"[k: string]: "+others.write(inner))
	}
	if len(lines) == 0 {
		return "{}"
	}
	return "{\n" + strings.Join(lines, ",\n") + "\n" + indent + "}"
}
