// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/nearest"
)

var (
	// unknownField matches the API server's message about a field that the schema lacks.
	unknownField = regexp.MustCompile(`unknown field "([^"]+)"`)
	// unsupported matches its message about a value that an enumeration lacks, with the values that it has.
	unsupported = regexp.MustCompile(`Unsupported value: "([^"]+)": supported values: ((?:"[^"]+"(?:, )?)+)`)
	// otherType matches its message about a value of another type than the field's.
	otherType = regexp.MustCompile(`([^\s\[]+): Invalid value: "\w+": \S+ in body must be of type (\w+)`)
	// unchecked is the text that it adds to each error of that kind.
	unchecked = regexp.MustCompile(`(?:, |\n\* )<nil>: Invalid value: null: some validation rules were not checked ` +
		`because the object was invalid; correct the existing errors to complete validation`)
	index = regexp.MustCompile(`\[[^\[\]]*\]`)
)

// shortened is an error with less text.
type shortened struct {
	error
	text string
}

func (s shortened) Error() string { return s.text }

func (s shortened) Unwrap() error { return s.error }

// Suggest adds suggestions to an error of the API server about an object of a kind: the fields that may be meant by
// unknown fields, and the way to write a value of another type.
func Suggest(kind string, err error) error {
	of, ok := checkers[kind]
	if err == nil || !ok {
		return err
	}
	c, schemaErr := of()
	if schemaErr != nil {
		return errors.Join(err, schemaErr)
	}
	for _, found := range unknownField.FindAllStringSubmatch(err.Error(), -1) {
		err = fmt.Errorf("%w; %s%s", err, found[1], suggestion(c.structural, found[1]))
	}
	for _, found := range unsupported.FindAllStringSubmatch(err.Error(), -1) {
		if near := valueFor(found[1], strings.Split(strings.Trim(found[2], `", `), `", "`)); near != "" {
			err = fmt.Errorf("%w; %s: %s", err, found[1], near)
		}
	}
	types := otherType.FindAllStringSubmatch(err.Error(), -1)
	if text := err.Error(); unchecked.MatchString(text) {
		err = shortened{err, unchecked.ReplaceAllString(text, "")}
	}
	for _, found := range types {
		if how := writtenAs(c.structural, found[1], found[2]); how != "" {
			err = fmt.Errorf("%w; %s: %s", err, found[1], how)
		}
	}
	return err
}

// writtenAs says how to write a value of a type; "" if the name of the type says enough.
func writtenAs(root *schema, path, is string) string {
	switch is {
	case "number":
		return "write a number without quotes, such as 4.0e-5"
	case "integer":
		return "write a whole number without quotes"
	case "object":
		if fields := slices.Sorted(maps.Keys(fieldsAt(root, path))); len(fields) > 0 {
			return "write one or more of its fields: " + strings.Join(fields, ", ")
		}
	}
	return ""
}

// valueFor says which value of an enumeration may be meant; "" if none is near.
func valueFor(given string, supported []string) string {
	switch near := nearest.Name(strings.ReplaceAll(given, "_", ""), supported); {
	case strings.EqualFold(given, "grpo") && slices.Contains(supported, "ImportanceSampling"):
		return "GRPO is algorithm.advantage.scale GroupStd with any of these losses"
	case near != "":
		return "did you mean " + near + "?"
	}
	return ""
}

// suggestion names the field that was probably meant by a path whose last field the schema lacks: a field beside it
// with a similar name, or a field elsewhere with the same name.
func suggestion(root *schema, path string) string {
	at := strings.LastIndex(path, ".") + 1
	parent, name := path[:at], path[at:]
	beside := slices.Sorted(maps.Keys(fieldsAt(root, parent)))
	if near := nearest.Name(name, beside); near != "" && near != name {
		return ": did you mean " + parent + near + "?"
	}
	var elsewhere []string
	for _, known := range pathsOf(root, "") {
		last := known[strings.LastIndex(known, ".")+1:]
		if strings.EqualFold(last, strings.ReplaceAll(name, "_", "")) && strings.HasPrefix(known, "spec.") {
			elsewhere = append(elsewhere, known)
		}
	}
	const most = 3
	switch {
	case len(elsewhere) > 0 && len(elsewhere) <= most:
		return ": did you mean " + strings.Join(elsewhere, " or ") + "?"
	case len(beside) > 0 && len(beside) <= 12:
		return ": remove it, or correct its name: the fields there are " + strings.Join(beside, ", ")
	}
	return ": remove it, or correct its name"
}

// fieldsAt returns the fields below a path, which may choose entries of lists and maps by [INDEX].
func fieldsAt(root *schema, path string) map[string]schema {
	at := *root
	for name := range strings.SplitSeq(index.ReplaceAllString(strings.TrimSuffix(path, "."), ""), ".") {
		if name == "" {
			break
		}
		next, ok := at.Properties[name]
		if !ok {
			return nil
		}
		switch at = next; {
		case at.Items != nil:
			at = *at.Items
		case at.AdditionalProperties != nil && at.AdditionalProperties.Structural != nil:
			at = *at.AdditionalProperties.Structural
		}
	}
	return at.Properties
}
