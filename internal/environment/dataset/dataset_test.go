// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAllFields(t *testing.T) {
	cases := map[string]struct {
		row  Row
		want map[string]any
	}{
		"a prompt and an answer": {NewRow("q", "a"), map[string]any{"prompt": "q", "answer": "a"}},
		"no answer":              {Row{ID: "1", Prompt: "q"}, map[string]any{"id": "1", "prompt": "q"}},
		"columns": {Row{Prompt: "q", Fields: map[string]any{"x": true}},
			map[string]any{"prompt": "q", "x": true}},
		"a column of that name": {Row{Prompt: "q", Answer: "a", Fields: map[string]any{"answer": "b"}},
			map[string]any{"prompt": "q", "answer": "b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.row.AllFields()); diff != "" {
				t.Errorf("AllFields (-want +got):\n%s", diff)
			}
		})
	}
}
