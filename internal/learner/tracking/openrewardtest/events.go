// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package openrewardtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// Events returns the content of requests, in their order, without the parts that differ between clients: times, and
// ids, which are replaced by the order of their first use. The division of messages among requests is also left out.
func Events(requests []Request) ([]string, error) {
	names := map[string]string{}
	name := func(event map[string]any, field, kind string) {
		id, ok := event[field].(string)
		if !ok {
			return
		}
		if names[id] == "" {
			names[id] = fmt.Sprintf("%s-%d", kind, len(names)+1)
		}
		event[field] = names[id]
	}
	var list []string
	for _, r := range requests {
		if r.Method != http.MethodPost {
			list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Method, r.Path, r.Key)))
			continue
		}
		events, err := decode(r.Body)
		if err != nil {
			return nil, err
		}
		for _, event := range events {
			delete(event.Other, "timestamp")
			name(event.Other, "eventId", "event")
			name(event.Other, "rolloutEventId", "event")
			name(event.Other, "callId", "call")
			data, err := json.Marshal(event.Other)
			if err != nil {
				return nil, fmt.Errorf("encoding an event: %w", err)
			}
			if event.Type == "rollout" && len(events) == 1 {
				list = append(list, "alone, with the key "+r.Key)
			}
			list = append(list, string(data))
		}
	}
	return list, nil
}
