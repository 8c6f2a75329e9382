// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"net/http"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// TestTokensOfTexts checks that each kind of renderer has the tokenizer by which texts are encoded.
func TestTokensOfTexts(t *testing.T) {
	templated := own()
	templated.Renderer, templated.Template = "", &contract.Template{Text: short, Names: map[string]string{"eos_token": "<|end|>"}}
	for name, model := range map[string]contract.Model{"a family": own(), "a template": templated} {
		r, err := ForModel(t.Context(), hub(t, http.StatusOK), model)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if r.Tokens == nil || len(r.Tokens.Encode("ab")) != 2 || r.Begin != nil {
			t.Errorf("%s: the renderer has the tokenizer %v, and texts begin with %v", name, r.Tokens, r.Begin)
		}
	}
}
