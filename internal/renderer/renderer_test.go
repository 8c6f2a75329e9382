// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package renderer

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

func TestForModelFailsClosed(t *testing.T) {
	_, err := ForModel("nobody/nothing")
	var unknown *UnknownModelError
	if !errors.As(err, &unknown) || unknown.Model != "nobody/nothing" || len(unknown.Known) == 0 {
		t.Errorf("ForModel of an unknown model: err = %v", err)
	}
}

func TestEachRendererHasItsTokenizer(t *testing.T) {
	for model := range models {
		if _, err := ForModel(model); err != nil {
			t.Errorf("ForModel(%q): %v", model, err)
		}
	}
}

func TestRoleColonNeedsItsEndToken(t *testing.T) {
	tokens, err := tokenizer.ForModel("tinkersim/byte-136k")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newRoleColon(tokens, "<|im_end|>"); err == nil {
		t.Error("a tokenizer without the end token was taken")
	}
}

func TestStop(t *testing.T) {
	if diff := cmp.Diff(Stop{Tokens: []int32{256}}, simulated(t).Stop()); diff != "" {
		t.Errorf("Stop (-want +got):\n%s", diff)
	}
}
