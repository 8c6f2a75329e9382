// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"math"
	"testing"
)

// TestSignTest compares with scipy.stats.binomtest(k, n).pvalue.
func TestSignTest(t *testing.T) {
	for _, tc := range []struct {
		better, worse int
		want          float64
	}{
		{0, 0, 1}, {1, 0, 1}, {5, 5, 1}, {0, 5, 0.0625}, {6, 0, 0.03125}, {9, 1, 0.021484375},
		{15, 5, 0.04138946533203125}, {60, 40, 0.05688793364098078}, {3000, 0, 0},
	} {
		if got := SignTest(tc.better, tc.worse); math.Abs(got-tc.want) > 1e-10 {
			t.Errorf("SignTest(%d, %d) = %v, want %v", tc.better, tc.worse, got, tc.want)
		}
	}
}
