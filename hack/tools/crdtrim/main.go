// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Command crdtrim shortens descriptions in CRDs: below the fields of each block that is named pod, which are types of
// Kubernetes for the most part, it leaves the first sentences. Two blocks of a TrainingRun repeat all of them, and a
// CRD has to fit into the annotation of client-side apply.
package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

func main() {
	for _, name := range os.Args[1:] {
		if err := trimFile(name); err != nil {
			fmt.Fprintln(os.Stderr, "crdtrim:", err)
			os.Exit(1)
		}
	}
}

func trimFile(name string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var crd map[string]any
	if err := yaml.Unmarshal(data, &crd); err != nil {
		return fmt.Errorf("decoding %s: %w", name, err)
	}
	walk(crd, 0)
	trimmed, err := yaml.Marshal(crd)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", name, err)
	}
	return os.WriteFile(name, append([]byte("---\n"), trimmed...), 0o644)
}

// walk shortens the descriptions of schemas that are at least two levels of properties below one that is named pod or
// podOverrides; depth is the level below it, from 1, or 0 outside.
func walk(schema map[string]any, depth int) {
	if text, ok := schema["description"].(string); ok && depth > 2 {
		schema["description"] = shorten(text)
	}
	for key, value := range schema {
		switch value := value.(type) {
		case map[string]any:
			if key == "properties" {
				walkProperties(value, depth)
			} else {
				walk(value, depth)
			}
		case []any:
			for _, item := range value {
				if nested, ok := item.(map[string]any); ok {
					walk(nested, depth)
				}
			}
		}
	}
}

func walkProperties(properties map[string]any, depth int) {
	for name, value := range properties {
		below := depth
		if depth > 0 || name == "pod" || name == "podOverrides" {
			below++
		}
		if schema, ok := value.(map[string]any); ok {
			walk(schema, below)
		}
	}
}

// maxLength of a description, unless its first sentence is longer.
const maxLength = 150

// sentenceEnd does not match the points of "i.e. " and "e.g. ".
var sentenceEnd = regexp.MustCompile(`[^.\s]{3}\.\s|\n\n`)

// shorten keeps the sentences of a text that fit, and at least the first that has more than one word, as "Required."
// has not.
func shorten(text string) string {
	short := ""
	for _, end := range sentenceEnd.FindAllStringIndex(text+" ", -1) {
		sentences := strings.TrimSpace((text + " ")[:end[1]])
		if strings.HasSuffix(sentences, "etc.") {
			continue
		}
		if strings.Contains(short, " ") && len(sentences) > maxLength {
			return short
		}
		short = sentences
	}
	return text
}
