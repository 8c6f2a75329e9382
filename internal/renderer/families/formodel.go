// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package families

import (
	"github.com/tinker-operator/tinker-operator/internal/models"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// ForModel returns the renderer of a model whose tokenizer is built in. Its error is a *models.UnknownError or a
// *tokenizer.UnknownModelError.
func ForModel(name string) (renderer.Renderer, error) {
	model, err := models.Lookup(name)
	if err != nil {
		return nil, err
	}
	tokens, err := tokenizer.ForModel(name)
	if err != nil {
		return nil, err
	}
	return New(model.Renderer(), tokens, Options{Begin: model.Tokenizer.Begin, End: model.Tokenizer.End})
}
