// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Lines finds the lines of fields in a text of YAML.
type Lines struct{ root *yaml.Node }

// LinesOf reads a text of YAML.
func LinesOf(text string) Lines {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil || len(document.Content) == 0 {
		return Lines{}
	}
	return Lines{root: document.Content[0]}
}

// Line returns the line of a field by its path below the text's root, such as environments[0].sampling.maxTokens, or
// the line of the nearest field above it in the text. The first line is 1; 0 means that the text has none of these
// fields.
func (l Lines) Line(path string) int {
	node, line := l.root, 0
	for _, part := range partsOf(path) {
		key, value := childOf(node, part)
		if value == nil {
			return line
		}
		node, line = value, key.Line
	}
	return line
}

var part = regexp.MustCompile(`[^.\[\]]+|\[[^\]]*\]`)

// partsOf splits a path at its dots and brackets.
func partsOf(path string) []string { return part.FindAllString(path, -1) }

// childOf returns the node that names a child, and its value. A child of a list is named by its place, or by the value
// of its field name.
func childOf(node *yaml.Node, part string) (key, value *yaml.Node) {
	if node == nil {
		return nil, nil
	}
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == strings.Trim(part, `[]"`) {
				return node.Content[i], node.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		name := strings.Trim(part, `[]"`)
		if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < len(node.Content) {
			return node.Content[n], node.Content[n]
		}
		for _, child := range node.Content {
			if _, named := childOf(child, "name"); named != nil && named.Value == name {
				return child, child
			}
		}
	}
	return nil, nil
}
