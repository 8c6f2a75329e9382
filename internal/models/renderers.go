// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package models

import "slices"

// DeclaresTools reports whether the format of a renderer can declare tools and has calls of tools.
func DeclaresTools(renderer string) bool { return !slices.Contains(read().WithoutTools, renderer) }

// Renderers returns the sorted names of all renderers, including the renderers that no model of the table has.
func Renderers() []string {
	names := slices.Clone(read().OtherRenderers)
	for _, m := range all() {
		names = append(names, m.Renderers...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
