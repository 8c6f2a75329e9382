// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package models

import "slices"

// Renderers returns the names of all renderers that speak the format of a model in the table, sorted.
func Renderers() []string {
	var names []string
	for _, m := range all() {
		names = append(names, m.Renderers...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
