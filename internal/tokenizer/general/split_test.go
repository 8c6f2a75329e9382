// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package general

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSplitBy compares pieces with those of the reference.
func TestSplitBy(t *testing.T) {
	cases := map[string]struct {
		pattern  string
		behavior Behavior
		invert   bool
		want     []string
	}{
		"removed":                     {"a", Removed, false, []string{"b-"}},
		"what is between is removed":  {"a", Removed, true, []string{"a", "a", "a"}},
		"isolated":                    {"a", Isolated, false, []string{"a", "a", "b-", "a"}},
		"isolated, inverted":          {"a", Isolated, true, []string{"a", "a", "b-", "a"}},
		"contiguous":                  {"a", Contiguous, false, []string{"aa", "b-", "a"}},
		"contiguous, inverted":        {"a", Contiguous, true, []string{"aa", "b-", "a"}},
		"with the next":               {"a", MergedWithNext, false, []string{"a", "ab-", "a"}},
		"with the next, inverted":     {"a", MergedWithNext, true, []string{"a", "a", "b-a"}},
		"with the previous":           {"a", MergedWithPrevious, false, []string{"a", "a", "b-a"}},
		"with the previous, inverted": {"a", MergedWithPrevious, true, []string{"a", "ab-", "a"}},
		"at nothing":                  {"", Isolated, false, []string{"a", "a", "b", "-", "a"}},
		"at nothing, removed":         {"", Removed, true, []string{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := []string{}
			for _, p := range SplitBy(Literal(tc.pattern), tc.behavior, tc.invert).split(nil, piece{text: "aab-a"}) {
				got = append(got, p.text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("pieces (-want +got):\n%s", diff)
			}
		})
	}
}
