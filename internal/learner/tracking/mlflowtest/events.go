// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package mlflowtest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Events returns the content of requests, in their order, without the parts that differ between clients: ids and times
// of the service, properties of the machine, and how values are divided among requests.
func Events(requests []Request) ([]string, error) {
	var events []string
	for _, r := range requests {
		var b request
		if len(r.Body) > 0 {
			if err := json.Unmarshal(r.Body, &b); err != nil {
				return nil, fmt.Errorf("decoding a request to %s: %w", r.Path, err)
			}
		}
		switch r.Path {
		case "/experiments/get-by-name":
			query, err := url.ParseQuery(r.Query)
			if err != nil {
				return nil, fmt.Errorf("decoding the query %q: %w", r.Query, err)
			}
			events = append(events, fmt.Sprintf("%s experiment %s, authorization %s", r.Method, query.Get("experiment_name"),
				r.Authorization))
		case "/experiments/create":
			events = append(events, "create experiment "+b.Name)
		case "/runs/search":
			events = append(events, "search "+b.Filter)
		case "/runs/create":
			events = append(events, "create run "+b.RunName)
			events = append(events, pairEvents("tag", b.Tags)...)
		case "/runs/log-batch":
			events = append(events, pairEvents("param", b.Params)...)
			for _, m := range b.Metrics {
				events = append(events, fmt.Sprintf("metric %s = %v at %d, time %d", m.Key, m.Value, m.Step, m.Timestamp))
			}
		case "/runs/update":
			event := "status " + b.Status
			if b.Status != "RUNNING" { // The package also sends an end with this status.
				event += fmt.Sprintf(", ended %t", b.EndTime > 0)
			}
			events = append(events, event)
		}
	}
	return events, nil
}

// pairEvents describes tags and parameters, except for tags about the machine.
func pairEvents(kind string, pairs []Pair) []string {
	var events []string
	for _, p := range pairs {
		if !strings.HasPrefix(p.Key, "mlflow.") {
			events = append(events, fmt.Sprintf("%s %s = %s", kind, p.Key, p.Value))
		}
	}
	slices.Sort(events)
	return events
}
