// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package families

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/models"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

func TestForModelUnknownModel(t *testing.T) {
	_, err := ForModel("nobody/nothing")
	var unknown *models.UnknownError
	if !errors.As(err, &unknown) || unknown.Model != "nobody/nothing" || len(unknown.Known) == 0 {
		t.Errorf("ForModel of an unknown model: err = %v", err)
	}
}

func TestNewUnknownName(t *testing.T) {
	_, err := New("qwen2", nil, Options{})
	var unknown *UnknownError
	if !errors.As(err, &unknown) || unknown.Name != "qwen2" || !slices.Contains(unknown.Known, "qwen3") {
		t.Errorf("New of an unknown name: err = %v", err)
	}
}

// TestEachModelHasItsRenderer checks that the table of models names only existing renderers.
func TestEachModelHasItsRenderer(t *testing.T) {
	for _, m := range models.All() {
		for _, name := range m.Renderers {
			if _, ok := variants[name]; !ok {
				t.Errorf("model %s has renderer %q, which does not exist", m.Name, name)
			}
		}
	}
}

func TestNewRequiresTokensOfFormat(t *testing.T) {
	tokens, err := tokenizer.ForModel("tinkersim/byte-136k")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Names() {
		if name == "role_colon" {
			continue // It needs no token.
		}
		_, err := New(name, tokens, Options{End: "<|im_end|>", Date: "2026-11-21"})
		if err == nil || !strings.Contains(err.Error(), "the tokenizer has no token") {
			t.Errorf("New(%q) with the simulator's tokenizer: err = %v", name, err)
		}
	}
	if _, err := New("role_colon", tokens, Options{Begin: "<s>"}); err == nil {
		t.Error("role_colon takes a begin that the tokenizer does not have")
	}
	if _, err := New("role_colon_end", tokens, Options{}); err == nil {
		t.Error("role_colon_end takes no end")
	}
}

func TestStop(t *testing.T) {
	if diff := cmp.Diff(renderer.Stop{Tokens: []int32{256}}, simulated(t).Stop()); diff != "" {
		t.Errorf("Stop (-want +got):\n%s", diff)
	}
}
