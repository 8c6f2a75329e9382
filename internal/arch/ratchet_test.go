// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import "testing"

// ratchet lists what exceeds a limit today, each with its size: it may shrink and not grow, and an entry that
// is no longer needed fails the test until it is deleted.
type ratchet map[string]int

var (
	largePackages   = ratchet{}
	largeTypes      = ratchet{}
	literalsOfEnums = ratchet{}
)

// check compares the sizes with the limit and with the entries of the list.
func (r ratchet) check(t *testing.T, sizes map[string]int, limit int, unit, advice string) {
	t.Helper()
	for name, size := range sizes {
		switch allowed, listed := r[name]; {
		case size <= limit && listed:
			t.Errorf("%s has %d %s and needs no exception any more: delete it from ratchet_test.go", name, size, unit)
		case size > limit && size > allowed:
			t.Errorf("%s has %d %s, %d are the limit: %s", name, size, unit, max(limit, allowed), advice)
		}
	}
	for name := range r {
		if _, ok := sizes[name]; !ok {
			t.Errorf("%s does not exist or has none: delete it from ratchet_test.go", name)
		}
	}
}
