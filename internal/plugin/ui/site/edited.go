// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/tinker-operator/tinker-operator/internal/plugin/manifest"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
)

// lineOfError matches the line in an error of the YAML parser.
var lineOfError = regexp.MustCompile(`line (\d+)`)

// parseSpec reads an edited spec, and takes hidden values from the stored one.
func parseSpec(text string, stored map[string]any) (map[string]any, []cause) {
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		found := cause{Message: output.Safe(err.Error())}
		if at := lineOfError.FindStringSubmatch(err.Error()); at != nil {
			found.Line, _ = strconv.Atoi(at[1])
		}
		return nil, []cause{found}
	}
	var edited map[string]any
	if err := utiljson.Unmarshal(data, &edited); err != nil {
		return nil, []cause{{Line: 1, Message: "a spec has fields: " + output.Safe(err.Error())}}
	}
	lines := manifest.LinesOf(text)
	var causes []cause
	restored := restore(edited, stored, "", func(path string) {
		causes = append(causes, cause{Line: lines.Line(path), Field: "spec." + path,
			Message: "what is hidden here has another place in the stored spec: give the whole value"})
	})
	spec, _ := restored.(map[string]any)
	return spec, causes
}

// restore replaces hidden values of the page by the stored ones, and calls lost with the path of each value that the
// stored spec does not have there.
func restore(edited, stored any, path string, lost func(path string)) any {
	switch v := edited.(type) {
	case map[string]any:
		of, _ := stored.(map[string]any)
		for name, child := range v {
			v[name] = restore(child, of[name], strings.TrimPrefix(path+"."+name, "."), lost)
		}
	case []any:
		for i, child := range v {
			v[i] = restore(child, counterpart(child, i, stored), fmt.Sprintf("%s[%d]", path, i), lost)
		}
	case string:
		if !strings.Contains(v, hidden) {
			return v
		}
		text, isText := stored.(string)
		if !isText || v != hidden && withoutUser(text) != v {
			lost(path)
			return v
		}
		return text
	}
	return edited
}

// counterpart returns the entry of a stored list with the name of an edited entry, or at its place if it has no name.
func counterpart(edited any, place int, stored any) any {
	list, _ := stored.([]any)
	entry, _ := edited.(map[string]any)
	if name, named := entry["name"]; named {
		for _, child := range list {
			if of, _ := child.(map[string]any); of["name"] == name {
				return child
			}
		}
		return nil
	}
	if place < len(list) {
		return list[place]
	}
	return nil
}
