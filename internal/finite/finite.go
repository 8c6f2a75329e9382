// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package finite distinguishes numbers that JSON can represent from NaN and the infinities.
package finite

import "math"

// Is reports whether a value is neither NaN nor infinite.
func Is(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Only returns the values that are finite.
func Only(values map[string]float64) map[string]float64 {
	kept := make(map[string]float64, len(values))
	for name, v := range values {
		if Is(v) {
			kept[name] = v
		}
	}
	return kept
}
