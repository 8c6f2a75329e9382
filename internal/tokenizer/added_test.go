// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMatcher(t *testing.T) {
	names := []string{"<a>", "<a>>", "<ab", "b>c", "<", "<|x|>"}
	var tokens []added
	for i, name := range names {
		tokens = append(tokens, added{id: int32(i), content: name})
	}
	m := newMatcher(tokens)
	cases := map[string]struct {
		text string
		want []string
	}{
		"nothing":                           {"", nil},
		"no token":                          {"a>b|", nil},
		"the longest of those that begin":   {"<a>>>", []string{"<a>>"}},
		"a shorter one where the long ends": {"<a><a", []string{"<a>", "<"}},
		"the first, though a later is long": {"<ab>c", []string{"<ab"}},
		"after one that breaks off":         {"<|x<|x|>", []string{"<", "<|x|>"}},
		"at the very end":                   {"xb>c", []string{"b>c"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for at := 0; ; {
				found, ok := m.find(tc.text, at)
				if !ok {
					break
				}
				if tc.text[found.start:found.end] != names[found.id] {
					t.Errorf("token %d is not at %d", found.id, found.start)
				}
				got = append(got, names[found.id])
				at = found.end
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("tokens (-want +got):\n%s", diff)
			}
		})
	}
}
