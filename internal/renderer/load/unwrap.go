// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package load

import "github.com/tinker-operator/tinker-operator/internal/renderer"

// Unwrap returns the renderer without its model.
func (f *Renderer) Unwrap() renderer.Renderer { return f.Renderer }
