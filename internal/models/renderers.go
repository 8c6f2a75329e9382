// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package models

import "slices"

// Renderers returns the sorted names of all renderers in the table.
func Renderers() []string {
	var names []string
	for _, m := range all() {
		names = append(names, m.Renderers...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
