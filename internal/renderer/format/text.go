// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package format

import "github.com/tinker-operator/tinker-operator/internal/renderer"

var _ renderer.Texts = (*familyRenderer)(nil)

// Encode implements renderer.Texts.
func (c *familyRenderer) Encode(text string) []int32 { return c.family.Base().Tokens.Encode(text) }

// Decode implements renderer.Texts.
func (c *familyRenderer) Decode(ids []int32) (string, error) {
	return c.family.Base().Tokens.Decode(ids)
}
