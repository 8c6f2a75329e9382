// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/test/admit"
)

var created = time.Date(2026, 11, 21, 23, 30, 0, 0, time.FixedZone("west", -3600))

const (
	qwen3Digest = "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4"
	kimiDigest  = "b6c497a7469b33ced9c38afb1ad6e47f03f5e5dc05f15930799210ec050c5103"
)

func withDefaults(model v1alpha1.Model) v1alpha1.Model {
	run := &v1alpha1.TrainingRun{Spec: v1alpha1.TrainingRunSpec{Model: model}}
	admit.Default(run)
	return run.Spec.Model
}

func TestModelOf(t *testing.T) {
	other := strings.Repeat("b", 64)
	kimi := "moonshotai/Kimi-K2.5"
	cases := map[string]struct {
		model     v1alpha1.Model
		renderer  string
		tokenizer *contract.Tokenizer
	}{
		"the simulator's tokenizer is built in": {v1alpha1.Model{Name: "tinkersim/byte-136k"}, "role_colon_end", nil},
		"a known model needs no more": {v1alpha1.Model{Name: "Qwen/Qwen3-8B"}, "qwen3",
			&contract.Tokenizer{Repository: "Qwen/Qwen3-8B", File: "tokenizer.json", SHA256: qwen3Digest}},
		"another renderer leaves the tokenizer alone": {v1alpha1.Model{Name: "Qwen/Qwen3-8B",
			Renderer: &v1alpha1.Renderer{Name: "qwen3_disable_thinking"}}, "qwen3_disable_thinking",
			&contract.Tokenizer{Repository: "Qwen/Qwen3-8B", File: "tokenizer.json", SHA256: qwen3Digest}},
		"a renderer that no model of the table has": {v1alpha1.Model{Name: "Qwen/Qwen3-8B",
			Renderer: &v1alpha1.Renderer{Name: "qwen3_vl"}}, "qwen3_vl",
			&contract.Tokenizer{Repository: "Qwen/Qwen3-8B", File: "tokenizer.json", SHA256: qwen3Digest}},
		"a revision of the same repository has the same file": {
			v1alpha1.Model{Name: "Qwen/Qwen3-8B", Tokenizer: &v1alpha1.Tokenizer{Repository: "Qwen/Qwen3-8B", Revision: "v2"}},
			"qwen3",
			&contract.Tokenizer{Repository: "Qwen/Qwen3-8B", Revision: "v2", File: "tokenizer.json", SHA256: qwen3Digest}},
		"unless its digest is given": {
			v1alpha1.Model{Name: "Qwen/Qwen3-8B", Tokenizer: &v1alpha1.Tokenizer{Repository: "Qwen/Qwen3-8B", SHA256: other}},
			"qwen3",
			&contract.Tokenizer{Repository: "Qwen/Qwen3-8B", File: "tokenizer.json", SHA256: other}},
		"of another repository nothing is known": {
			v1alpha1.Model{Name: "Qwen/Qwen3-8B", Tokenizer: &v1alpha1.Tokenizer{Repository: "me/mirror"}}, "qwen3",
			&contract.Tokenizer{Repository: "me/mirror", File: "tokenizer.json"}},
		"a mirror of ranks has ranks": {
			v1alpha1.Model{Name: kimi, Tokenizer: &v1alpha1.Tokenizer{URL: "https://host/tiktoken.model", SHA256: kimiDigest}},
			"kimi_k25",
			&contract.Tokenizer{URL: "https://host/tiktoken.model", Ranks: "kimi_k2", SHA256: kimiDigest}},
		"and a tokenizer.json none": {
			v1alpha1.Model{Name: kimi, Tokenizer: &v1alpha1.Tokenizer{URL: "https://host/tokenizer.json", SHA256: other}},
			"kimi_k25",
			&contract.Tokenizer{URL: "https://host/tokenizer.json", SHA256: other}},
		"an unknown model has its own tokenizer": {
			v1alpha1.Model{Name: "me/mine:peft:8192"}, contract.RendererTemplate, &contract.Tokenizer{Repository: "me/mine"}},
		"an unknown model with a renderer has its own tokenizer": {
			v1alpha1.Model{Name: "me/mine", Renderer: &v1alpha1.Renderer{Name: "qwen3"}}, "qwen3",
			&contract.Tokenizer{Repository: "me/mine"}},
		"an unknown model says both itself": {
			v1alpha1.Model{Name: "me/mine", Renderer: &v1alpha1.Renderer{Name: "qwen3"},
				Tokenizer: &v1alpha1.Tokenizer{Repository: "me/mine"}}, "qwen3",
			&contract.Tokenizer{Repository: "me/mine"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ModelOf(withDefaults(tc.model), created, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got.Renderer != tc.renderer {
				t.Errorf("renderer %s, want %s", got.Renderer, tc.renderer)
			}
			if diff := cmp.Diff(tc.tokenizer, got.Tokenizer); diff != "" {
				t.Errorf("tokenizer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestModelOfFailsClosed(t *testing.T) {
	cases := map[string]struct {
		model v1alpha1.Model
		want  []string
	}{
		"an unknown model suggests the nearest": {v1alpha1.Model{Name: "Qwen/Qwen3-8b"},
			[]string{"Qwen/Qwen3-8b", "model.renderer", "model.tokenizer", "did you mean Qwen/Qwen3-8B?"}},
		"a name that is no repository names the list": {v1alpha1.Model{Name: "mine"},
			[]string{"mine", "model.renderer", "model.tokenizer", "docs/models.md"}},
		"a built-in model has no template at a hub": {v1alpha1.Model{Name: "tinkersim/byte-136k",
			Renderer: &v1alpha1.Renderer{Template: &v1alpha1.Template{Repository: &v1alpha1.TemplateRepository{}}}},
			[]string{"no repository at the hub", "inline", "configMapKeyRef"}},
		"a template that cannot be parsed has its line": {v1alpha1.Model{Name: "Qwen/Qwen3-8B",
			Renderer: &v1alpha1.Renderer{Template: &v1alpha1.Template{Inline: "a\n{% include 'x' %}"}}},
			[]string{"line 2", "include"}},
		"a template with another digest": {v1alpha1.Model{Name: "Qwen/Qwen3-8B",
			Renderer: &v1alpha1.Renderer{Template: &v1alpha1.Template{Inline: "a", SHA256: strings.Repeat("0", 64)}}},
			[]string{"ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb", strings.Repeat("0", 64)}},
		"an unknown renderer lists the known": {v1alpha1.Model{Name: "Qwen/Qwen3-8B",
			Renderer: &v1alpha1.Renderer{Name: "qwen33"}},
			[]string{"qwen33", "qwen3_instruct"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := ModelOf(withDefaults(tc.model), created, nil)
			if err == nil {
				t.Fatal("taken")
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		})
	}
}

func TestFormatsWithADateHaveTheRunsOwn(t *testing.T) {
	for name, want := range map[string]string{"openai/gpt-oss-20b": "2026-11-22", "Qwen/Qwen3-8B": ""} {
		got, err := ModelOf(withDefaults(v1alpha1.Model{Name: name}), created, nil)
		if err != nil || got.Date != want {
			t.Errorf("ModelOf(%s): date %q, %v, want %q", name, got.Date, err, want)
		}
	}
}
