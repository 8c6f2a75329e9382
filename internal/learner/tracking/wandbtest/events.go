// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package wandbtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// body is the body of a request to either interface.
type body struct {
	OperationName string
	Variables     map[string]any
	Complete      bool
	ExitCode      *int
	Files         map[string]struct {
		Offset  int
		Content []string
	}
}

// Events returns the content of requests, in their order, without the parts that differ between clients: times,
// properties of the machine, files, and how lines are divided among requests.
func Events(requests []Request) ([]string, error) {
	var events []string
	created, summary := false, ""
	for _, r := range requests {
		var b body
		if err := json.Unmarshal(r.Body, &b); err != nil {
			return nil, fmt.Errorf("decoding a request to %s: %w", r.Path, err)
		}
		var more []string
		var err error
		switch {
		case b.OperationName == "RunResumeStatus":
			created = false
			more = []string{"find " + encode(b.Variables), "authorization " + r.Authorization}
		case b.OperationName == "UpsertBucket" && !created:
			created = true
			more, err = upsertEvent(b.Variables)
		case strings.HasSuffix(r.Path, "/file_stream"):
			more, err = streamEvents(r.Path, b, &summary)
		}
		if err != nil {
			return nil, err
		}
		events = append(events, more...)
	}
	return events, nil
}

// streamEvents describes the lines of a request, and with the end of the run its summary.
func streamEvents(path string, b body, summary *string) ([]string, error) {
	var events []string
	history := b.Files["wandb-history.jsonl"]
	for i, line := range history.Content {
		values, err := decode(line)
		if err != nil {
			return nil, err
		}
		events = append(events, fmt.Sprintf("%s line %d %s", path, history.Offset+i, encode(values)))
	}
	if lines := b.Files["wandb-summary.json"]; len(lines.Content) > 0 && len(history.Content) > 0 {
		values, err := decode(lines.Content[0])
		if err != nil {
			return nil, err
		}
		*summary = "summary " + encode(values)
	}
	if b.Complete {
		events = append(events, *summary, fmt.Sprintf("complete %d", *b.ExitCode))
	}
	return events, nil
}

// upsertEvent describes how a run is created or found.
func upsertEvent(variables map[string]any) ([]string, error) {
	kept := map[string]any{}
	for _, name := range []string{"name", "project", "entity", "displayName", "tags"} {
		kept[name] = variables[name]
	}
	kept["known"] = variables["id"] != nil
	config, err := decode(variables["config"].(string))
	kept["config"] = config
	return []string{"upsert " + encode(kept)}, err
}

// decode decodes an object without the values that depend on time and machine.
func decode(text string) (map[string]any, error) {
	var values map[string]any
	if err := json.Unmarshal([]byte(text), &values); err != nil {
		return nil, fmt.Errorf("decoding %q: %w", text, err)
	}
	maps.DeleteFunc(values, func(name string, _ any) bool {
		return name == "_timestamp" || name == "_runtime" || name == "_wandb"
	})
	return values, nil
}

// encode encodes a value with sorted keys.
func encode(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic("wandbtest: " + err.Error()) // It was decoded from JSON.
	}
	return string(data)
}
