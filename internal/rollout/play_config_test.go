// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/renderer/load"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/fetch"
)

func TestPlayConfigChecksTheFormat(t *testing.T) {
	model := contract.Model{Name: "tinkersim/byte-136k", Renderer: "role_colon_end"}
	speech, err := load.ForModel(t.Context(), &fetch.Fetcher{}, model)
	if err != nil {
		t.Fatal(err)
	}
	other := model
	other.Renderer = "role_colon"
	cases := map[string]struct {
		speaks *load.Renderer
		plays  contract.Model
		ok     bool
	}{
		"the same model":                     {speech, model, true},
		"another renderer":                   {speech, other, false},
		"a built-in model, without a format": {nil, model, true},
		"an unknown model, without a format": {nil, contract.Model{Name: "no/body"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			play, err := contract.EncodePlay(contract.Play{Version: contract.FormatVersion, Model: tc.plays})
			if err != nil {
				t.Fatal(err)
			}
			r, err := newPlayConfig(play, tc.speaks, &environments{})
			var unplayable *ConfigError
			if tc.ok != (err == nil) || (err != nil && !errors.As(err, &unplayable)) {
				t.Fatalf("newPlayConfig: %v, want success %v", err, tc.ok)
			}
			if err == nil && r.renderer == nil {
				t.Error("there is no renderer")
			}
		})
	}
}
