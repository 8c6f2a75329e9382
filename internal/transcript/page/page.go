// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package page renders transcripts as HTML: one file for each step, which a browser shows without a network and without
// scripts. All texts come from models and data sets, and html/template escapes them.
package page

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strconv"

	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

//go:embed page.html
var source string

var parsed = template.Must(template.New("page").Funcs(template.FuncMap{
	"number": number, "sorted": sorted, "add": func(a, b int) int { return a + b },
}).Parse(source))

// Render returns the page of a step.
func Render(step transcript.Step) ([]byte, error) {
	var out bytes.Buffer
	if err := parsed.Execute(&out, step); err != nil {
		return nil, fmt.Errorf("rendering the page: %w", err)
	}
	return out.Bytes(), nil
}

// number returns a number in four digits.
func number(value any) string {
	switch v := value.(type) {
	case float64:
		return strconv.FormatFloat(v, 'g', 4, 64)
	case *float64:
		if v != nil {
			return strconv.FormatFloat(*v, 'g', 4, 64)
		}
	}
	return ""
}

// value is a number with its name.
type value struct {
	Name  string
	Value float64
}

// sorted returns numbers in the order of their names.
func sorted(numbers map[string]float64) []value {
	var list []value
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		list = append(list, value{name, numbers[name]})
	}
	return list
}
