// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package shuffle

import (
	"slices"
	"testing"
)

// TestPython compares orders with those of Python's random.Random(seed).shuffle.
func TestPython(t *testing.T) {
	for seed, want := range map[uint32][]int{
		42: {7, 3, 2, 8, 5, 6, 9, 4, 0, 1},
		0:  {7, 8, 1, 5, 3, 4, 2, 0, 9, 6},
	} {
		if got := Python(seed, 10); !slices.Equal(got, want) {
			t.Errorf("Python(%d, 10) = %v, want %v", seed, got, want)
		}
	}
	if got := Python(42, 0); len(got) != 0 {
		t.Errorf("Python of nothing = %v", got)
	}
	// The order of list(range(1000)) needs more numbers than one fill of the generator has.
	got := Python(42, 1000)
	if begin, end := got[:6], got[1000-6:]; !slices.Equal(begin, []int{776, 507, 895, 922, 33, 483}) || !slices.Equal(end,
		[]int{250, 281, 759, 25, 114, 654}) {
		t.Errorf("Python(42, 1000) = %v ... %v", begin, end)
	}
}
