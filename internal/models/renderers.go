// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package models

import "slices"

// DeclaresTools reports whether the format of a renderer declares tools and has calls of them.
func DeclaresTools(renderer string) bool { return !slices.Contains(read().WithoutTools, renderer) }

// Renderers returns the sorted names of all renderers, also of those that no model of the table has.
func Renderers() []string {
	names := slices.Clone(read().OtherRenderers)
	for _, m := range all() {
		names = append(names, m.Renderers...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
