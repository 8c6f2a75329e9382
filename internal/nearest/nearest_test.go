// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package nearest

import "testing"

func TestName(t *testing.T) {
	candidates := []string{"arithmetic", "countdown", "rlvr"}
	for name, want := range map[string]string{
		"arithmetic": "arithmetic", "aritmetic": "arithmetic", "Countdwon": "countdown", "rlvr2": "rlvr", "x": "", "": "",
	} {
		if got := Name(name, candidates); got != want {
			t.Errorf("Name(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "abd", 1}, {"abc", "xabc", 1}, {"kitten", "sitting", 3}} {
		if got := distance(tc.a, tc.b); got != tc.want || distance(tc.b, tc.a) != tc.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}
