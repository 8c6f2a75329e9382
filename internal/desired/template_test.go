// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/models"
)

const digestOfA = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" // sha256 of "a"

func TestTemplateOfAModel(t *testing.T) {
	own := &v1alpha1.Template{Repository: &v1alpha1.TemplateRepository{}}
	cases := map[string]struct {
		model v1alpha1.Model
		text  string
		want  *contract.Template
	}{
		"a known model has a renderer": {model: v1alpha1.Model{Name: "Qwen/Qwen3-8B"}},
		"an unknown model has its own": {model: v1alpha1.Model{Name: "me/mine:peft:8192"},
			want: &contract.Template{Repository: "me/mine"}},
		"the template is where the tokenizer is": {model: v1alpha1.Model{Name: "me/mine",
			Tokenizer: &v1alpha1.Tokenizer{Repository: "me/mirror", Revision: "v2"}},
			want: &contract.Template{Repository: "me/mirror", Revision: "v2"}},
		"or where the model is named after": {model: v1alpha1.Model{Name: "me/mine",
			Tokenizer: &v1alpha1.Tokenizer{URL: "https://host/tokenizer.json", SHA256: digestOfA}},
			want: &contract.Template{Repository: "me/mine"}},
		"of a known model on request": {model: v1alpha1.Model{Name: "Qwen/Qwen3-8B",
			Renderer: &v1alpha1.Renderer{Template: own}}, want: &contract.Template{Repository: "Qwen/Qwen3-8B"}},
		"inline": {model: v1alpha1.Model{Name: "tinkersim/byte-136k",
			Renderer: &v1alpha1.Renderer{Template: &v1alpha1.Template{Inline: "a", SHA256: digestOfA}}},
			want: &contract.Template{Text: "a", SHA256: digestOfA}},
		"of a ConfigMap": {model: v1alpha1.Model{Name: "Qwen/Qwen3-8B", Renderer: &v1alpha1.Renderer{
			Template: &v1alpha1.Template{ConfigMapKeyRef: &ref.ConfigMapKey{Name: "templates", Key: "own"}}}}, text: "a",
			want: &contract.Template{Text: "a", SHA256: digestOfA}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ModelOf(withDefaults(tc.model), created, &tc.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Template); diff != "" {
				t.Errorf("template (-want +got):\n%s", diff)
			}
			if templated := got.Renderer == contract.RendererTemplate; templated != (tc.want != nil) {
				t.Errorf("renderer %q with template %t", got.Renderer, tc.want != nil)
			}
			if tc.want != nil && got.Date != "2026-11-22" {
				t.Errorf("date %q, want the date of the run's creation", got.Date)
			}
		})
	}
}

func TestUntestedModels(t *testing.T) {
	byTemplate := &v1alpha1.Renderer{Template: &v1alpha1.Template{Inline: "a"}}
	for name, tc := range map[string]struct {
		model v1alpha1.Model
		want  []string
	}{
		"a known model": {v1alpha1.Model{Name: "Qwen/Qwen3-8B"}, nil},
		"a known model whose tokenizer was not at hand": {v1alpha1.Model{Name: "zai-org/GLM-5.3:peft:262144"},
			[]string{"zai-org/GLM-5.3", "tokenizer was not at hand", "kubectl tinker render --check"}},
		"a served model whose renderer cannot be had": {v1alpha1.Model{Name: "moonshotai/Kimi-K3.1-Pro"},
			[]string{"moonshotai/Kimi-K3.1-Pro", "chat template", "tml-renderers", "kubectl tinker render --check"}},
		"a known model with a template": {v1alpha1.Model{Name: "Qwen/Qwen3-8B", Renderer: byTemplate},
			[]string{"template of the spec"}},
		"an unknown model": {v1alpha1.Model{Name: "me/mine"},
			[]string{"me/mine", "chat template", "tokenizer", "kubectl tinker render --check"}},
		"an unknown model with a near name": {v1alpha1.Model{Name: "Qwen/Qwen3-8"}, []string{"Did you mean Qwen/Qwen3-8B?"}},
		"an unknown model with a renderer": {v1alpha1.Model{Name: "me/mine", Renderer: &v1alpha1.Renderer{Name: "qwen3"}},
			[]string{"whether qwen3 is its format"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Untested(tc.model)
			if (got == "") != (tc.want == nil) {
				t.Errorf("got %q", got)
			}
			for _, part := range tc.want {
				if !strings.Contains(got, part) {
					t.Errorf("%q does not say %q", got, part)
				}
			}
			if _, served := models.UntestedTemplate(tc.model.Name); served && strings.Contains(got, "Did you mean") {
				t.Errorf("%q names another model", got)
			}
		})
	}
}
