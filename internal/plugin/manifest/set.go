// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/tinker-operator/tinker-operator/internal/nearest"
)

// Set sets a field of a TrainingRun, as PATH=VALUE says. A path is dotted, and [NAME] chooses an entry of a list or
// map: spec.environments[arithmetic].groupSize=16. The schema decides the type of the value; null removes the field,
// and lists and objects are JSON, or names that commas separate.
func Set(object map[string]any, assignment string) error {
	path, text, ok := strings.Cut(assignment, "=")
	if !ok {
		return fmt.Errorf("%q lacks a value: write PATH=VALUE", assignment)
	}
	root, err := runSchema()
	if err != nil {
		return err
	}
	steps, err := split(path)
	if err != nil {
		return err
	}
	s := setter{root: root, path: path, text: text}
	_, err = s.set(object, root, steps, "")
	return err
}

// step is a part of a path: the name of a field, or the key of an entry.
type step struct {
	name  string
	entry bool
}

var stepPattern = regexp.MustCompile(`^(?:\.?([A-Za-z][A-Za-z0-9]*)|\[([^\[\]]+)\])`)

// split splits a path into its parts.
func split(path string) ([]step, error) {
	var steps []step
	for rest := path; rest != ""; {
		match := stepPattern.FindStringSubmatch(rest)
		if match == nil || len(steps) == 0 && (rest[0] == '.' || match[2] != "") {
			return nil, fmt.Errorf("path %q cannot be read at %q: write spec.FIELD.FIELD, and [NAME] for entries of lists", path,
				rest)
		}
		steps = append(steps, step{name: match[1] + match[2], entry: match[2] != ""})
		rest = rest[len(match[0]):]
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("the path is empty: write PATH=VALUE, as in spec.algorithm.steps=100")
	}
	return steps, nil
}

// setter sets one field.
type setter struct {
	root *schema
	// path is the whole path, text the value.
	path, text string
}

// set returns the value with the field set in it. value may be nil, and done is the path to it.
func (s setter) set(value any, at *schema, steps []step, done string) (any, error) {
	if len(steps) == 0 {
		return s.parse(at)
	}
	next, rest := steps[0], steps[1:]
	switch {
	case at.XPreserveUnknownFields:
		return nil, fmt.Errorf("path %q: %s takes JSON as a whole: write %s={...}", s.path, done, done)
	case at.Items != nil:
		return s.setEntry(value, at, next, rest, done)
	case at.AdditionalProperties != nil:
		return s.setIn(value, at.AdditionalProperties.Structural, next.name, rest, fmt.Sprintf("%s[%s]", done, next.name))
	}
	child, ok := at.Properties[next.name]
	if !ok || next.entry {
		return nil, s.unknown(next, at, done)
	}
	return s.setIn(value, &child, next.name, rest, strings.TrimPrefix(done+"."+next.name, "."))
}

// setIn sets a field below a member of an object.
func (s setter) setIn(value any, child *schema, name string, rest []step, done string) (any, error) {
	object, ok := value.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	changed, err := s.set(object[name], child, rest, done)
	if err != nil {
		return nil, err
	}
	if changed == nil {
		delete(object, name)
	} else {
		object[name] = changed
	}
	return object, nil
}

// setEntry sets a field of the entry that next names in a list.
func (s setter) setEntry(value any, at *schema, next step, rest []step, done string) (any, error) {
	key, list := keyOf(at), asList(value)
	if key == "" {
		return nil, fmt.Errorf("path %q: %s is set as a whole: write %s=A,B", s.path, done, done)
	}
	var names []string
	for i, entry := range list {
		object, _ := entry.(map[string]any)
		name := fmt.Sprint(object[key])
		names = append(names, name)
		if !next.entry || name != next.name {
			continue
		}
		changed, err := s.set(object, at.Items, rest, fmt.Sprintf("%s[%s]", done, name))
		if err != nil {
			return nil, err
		}
		if changed == nil {
			return slices.Delete(list, i, i+1), nil
		}
		list[i] = changed
		return list, nil
	}
	switch {
	case next.entry && enumerates(at.Items.Properties[key], next.name):
		entry, err := s.set(map[string]any{key: next.name}, at.Items, rest, fmt.Sprintf("%s[%s]", done, next.name))
		if err != nil || entry == nil {
			return value, err
		}
		return append(list, entry), nil
	case !next.entry:
		return nil, fmt.Errorf("path %q: %s is a list: choose an entry, as in %s[%s].%s", s.path, done, done,
			append(names, "NAME")[0], next.name)
	case len(names) == 0:
		return nil, fmt.Errorf("path %q: %s has no entries: add one to the file", s.path, done)
	default:
		return nil, fmt.Errorf("path %q: %s has no entry %q, its entries are %s: choose one, or add it to the file", s.path,
			done, next.name, strings.Join(names, ", "))
	}
}

// enumerates reports whether the schema of a field lists its values, and that name is one of them.
func enumerates(field schema, name string) bool {
	return field.ValueValidation != nil && slices.ContainsFunc(field.ValueValidation.Enum,
		func(v structuralschema.JSON) bool { return v.Object == name })
}

func asList(value any) []any {
	list, _ := value.([]any)
	return list
}

var selector = regexp.MustCompile(`\[[^\[\]]+\]`)

// unknown returns the error about a field that does not exist, with the field that may be meant.
func (s setter) unknown(next step, at *schema, done string) error {
	all := pathsOf(s.root, "")
	selectors := selector.FindAllString(s.path, -1)
	general := selector.ReplaceAllString(s.path, "[NAME]")
	near := nearest.Name(general, all)
	// A field may have been named without its parents.
	if near == "" {
		for _, path := range all {
			if path == "spec."+general || strings.HasSuffix(path, "."+general) {
				near = path
				break
			}
		}
	}
	if near != "" {
		for _, chosen := range selectors {
			near = strings.Replace(near, "[NAME]", chosen, 1)
		}
		return fmt.Errorf("path %q: there is no field %s: did you mean %s?", s.path,
			strings.TrimPrefix(done+"."+next.name, "."), near)
	}
	var names []string
	for _, path := range pathsOf(at, "") {
		if !strings.Contains(path, ".") {
			names = append(names, path)
		}
	}
	if len(names) == 0 {
		return fmt.Errorf("path %q: %s has no fields below it", s.path, done)
	}
	return fmt.Errorf("path %q: there is no field %s: the fields are %s", s.path,
		strings.TrimPrefix(done+"."+next.name, "."), strings.Join(names, ", "))
}

// parse returns the value in the type of its field.
func (s setter) parse(at *schema) (any, error) {
	if s.text == "null" {
		return nil, nil
	}
	invalid := func(want string) error { return fmt.Errorf("path %q: %q is not %s", s.path, s.text, want) }
	if at.XIntOrString {
		return s.text, nil
	}
	switch at.Type {
	case "integer":
		n, err := strconv.ParseInt(s.text, 10, 64)
		if err != nil {
			return nil, invalid("a whole number")
		}
		return n, nil
	case "number":
		v, err := strconv.ParseFloat(s.text, 64)
		if err != nil || v-v != 0 {
			return nil, invalid("a number")
		}
		return v, nil
	case "boolean":
		switch s.text {
		case "true", "false":
			return s.text == "true", nil
		}
		return nil, invalid("true or false")
	case "string":
		return s.parseText(at, s.text)
	case "array":
		return s.parseList(at)
	default:
		var object map[string]any
		if err := json.Unmarshal([]byte(s.text), &object); err != nil {
			return nil, fmt.Errorf("path %q: %q is not a JSON object: set its fields one by one, or write {\"FIELD\": VALUE}",
				s.path, s.text)
		}
		return object, nil
	}
}

func (s setter) parseText(at *schema, text string) (any, error) {
	var values []string
	if at.ValueValidation != nil {
		for _, value := range at.ValueValidation.Enum {
			values = append(values, fmt.Sprint(value.Object))
		}
	}
	if len(values) == 0 || slices.Contains(values, text) {
		return text, nil
	}
	if near := nearest.Name(text, values); near != "" {
		return nil, fmt.Errorf("path %q: %q is not a value of the field: did you mean %s?", s.path, text, near)
	}
	return nil, fmt.Errorf("path %q: %q is not a value of the field: choose one of %s", s.path, text,
		strings.Join(values, ", "))
}

// parseList reads a list: as JSON, or as scalars that commas separate.
func (s setter) parseList(at *schema) (any, error) {
	if strings.HasPrefix(strings.TrimSpace(s.text), "[") {
		var list []any
		if err := json.Unmarshal([]byte(s.text), &list); err != nil {
			return nil, fmt.Errorf("path %q: %q is not a JSON list: %w", s.path, s.text, err)
		}
		return list, nil
	}
	if at.Items.Type == "object" {
		return nil, fmt.Errorf("path %q: the list has objects: choose an entry with [NAME], or write a JSON list", s.path)
	}
	list := []any{}
	for text := range strings.SplitSeq(s.text, ",") {
		value, err := setter{root: s.root, path: s.path, text: strings.TrimSpace(text)}.parse(at.Items)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	return list, nil
}
