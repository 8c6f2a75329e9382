// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"strings"
	"testing"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/renderer/load"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
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
			r, err := newPlayConfig(play, formatOf(tc.speaks), &environments{})
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

// TestPlayConfigUsesTheDialectOfTheEnvironment prepares an environment that has a dialect of calls, for a model whose
// format has no calls.
func TestPlayConfigUsesTheDialectOfTheEnvironment(t *testing.T) {
	definition := contract.Definition{
		Dataset:     &contract.Dataset{Dataset: settings.Dataset{Arithmetic: &settings.ArithmeticData{MaxOperand: 9}}},
		Reward:      &settings.Reward{RewardRule: settings.RewardRule{ExactMatch: &settings.ExactMatch{}}},
		Interaction: &settings.Interaction{ToolUse: &settings.ToolUse{}},
	}
	format, err := families.ForModel("tinkersim/byte-136k")
	if err != nil {
		t.Fatal(err)
	}
	conversation := renderer.Conversation{
		Messages: []chat.Message{{Role: chat.RoleUser, Content: "1 + 1?"}}, Tools: []chat.Tool{{Name: "calculator"}},
	}
	for dialect, want := range map[settings.ToolDialect]string{"": "", settings.HermesJSON: "return a json object",
		settings.QwenXML: "<function=example_function_name>"} {
		definition.Interaction.ToolUse.Dialect = dialect
		digest, err := contract.DefinitionDigest(definition)
		if err != nil {
			t.Fatal(err)
		}
		c := &playConfig{
			play:     contract.Play{Environments: []contract.Environment{{Name: "sums", Definition: definition}}},
			renderer: format, built: &environments{built: map[string]environment.Environment{digest: nil}},
		}
		_, player, err := c.prepare(t.Context(), exchange.Lease{Environment: "sums"})
		if err != nil {
			t.Fatal(err)
		}
		prompt, err := player.Renderer.Prompt(conversation)
		if want == "" {
			if !errors.Is(err, renderer.ErrUnsupported) {
				t.Errorf("Prompt without a dialect: %v, want that the format has no place for tools", err)
			}
			continue
		}
		tokens, _ := tokenizer.ForModel("tinkersim/byte-136k")
		if text, _ := tokens.Decode(prompt); err != nil || !strings.Contains(text, want) {
			t.Errorf("the prompt in %s lacks %q (%v):\n%s", dialect, want, err, text)
		}
	}
}

// formatOf returns a format with a loaded renderer, or without one if r is nil.
func formatOf(r *load.Renderer) *format {
	f := &format{}
	if r != nil {
		f.loaded.Store(r)
	}
	return f
}
