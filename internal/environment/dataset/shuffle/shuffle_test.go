// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package shuffle

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPermutation compares permutations with those of numpy.random.default_rng(seed).permutation(n).
func TestPermutation(t *testing.T) {
	cases := []struct {
		seed  uint64
		n     int64
		first []uint32
	}{
		{3, 2, []uint32{1, 0}},
		{2, 3, []uint32{2, 0, 1}},
		{0, 10, []uint32{4, 6, 2, 7, 3, 5, 9, 0, 8, 1}},
		{42, 10, []uint32{5, 6, 0, 7, 3, 2, 4, 9, 1, 8}},
		{12345, 10, []uint32{4, 8, 1, 3, 7, 9, 6, 0, 2, 5}},
		{0, 12000, []uint32{236, 1761, 2052, 2074, 5270, 10053, 7269, 9271}},
		{0, 7473, []uint32{5441, 2360, 5646, 1485, 1469, 824, 5624, 3950}},
	}
	for _, tc := range cases {
		t.Run(fmt.Sprintf("seed %d of %d", tc.seed, tc.n), func(t *testing.T) {
			got := Permutation(tc.seed, tc.n)
			if int64(len(got)) != tc.n {
				t.Fatalf("Permutation has %d numbers, want %d", len(got), tc.n)
			}
			if diff := cmp.Diff(tc.first, got[:len(tc.first)]); diff != "" {
				t.Errorf("Permutation (-want +got):\n%s", diff)
			}
			seen := make([]bool, tc.n)
			for _, i := range got {
				if seen[i] {
					t.Fatalf("%d occurs twice", i)
				}
				seen[i] = true
			}
		})
	}
}

func TestPermutationOfFewRows(t *testing.T) {
	for n := range int64(2) {
		if got := Permutation(7, n); int64(len(got)) != n {
			t.Errorf("Permutation(7, %d) = %v", n, got)
		}
	}
}
