// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

func TestPinTemplate(t *testing.T) {
	read := contract.Template{Repository: "me/mine", Text: "text", Names: map[string]string{"eos_token": "</s>"}}
	digest, err := read.Digest()
	if err != nil {
		t.Fatal(err)
	}
	other := read
	other.Names = map[string]string{"eos_token": "<end>"}
	broken := errors.New("line 3: no such tag")
	for name, tc := range map[string]struct {
		earlier string
		answers []any // of ReadTemplate, a template or an error
		blocked []string
	}{
		"the first attempt takes what there is": {answers: []any{read}, blocked: []string{""}},
		"a later attempt finds the same":        {earlier: digest, answers: []any{read}, blocked: []string{""}},
		"a template that cannot be used is waited for": {answers: []any{broken, read},
			blocked: []string{"line 3: no such tag", ""}},
		"a template whose tokens have changed is waited for": {earlier: digest, answers: []any{other, read},
			blocked: []string{"restore the former files of me/mine", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			f := fake{}
			c := check(&f, func(file *contract.RunFile) {
				file.Fixed.Model.Template = &contract.Template{Repository: "me/mine"}
				file.Fixed.Model.Tokenizer = &contract.Tokenizer{Repository: "me/mine"}
				file.TemplateSHA256 = tc.earlier
			})
			c.TemplateBlocked = func(problem string) { f.blocked = append(f.blocked, problem) }
			c.ReadTemplate = func(_ context.Context, model contract.Model) (contract.Template, error) {
				if model.Tokenizer.SHA256 != "pinned" {
					t.Errorf("the template is tried with the tokenizer %q, want the pinned one", model.Tokenizer.SHA256)
				}
				answer := tc.answers[0]
				tc.answers = tc.answers[1:]
				if err, ok := answer.(error); ok {
					return contract.Template{}, err
				}
				return answer.(contract.Template), nil
			}
			got, found, err := c.PinTemplate(t.Context(), "pinned")
			if diff := cmp.Diff(&read, got); diff != "" || err != nil || found != digest {
				t.Errorf("PinTemplate = digest %s (%v), want %s; template (-want +got):\n%s", found, err, digest, diff)
			}
			if len(f.blocked) != len(tc.blocked) {
				t.Fatalf("problems %q, want %q", f.blocked, tc.blocked)
			}
			for i, want := range tc.blocked {
				if !strings.Contains(f.blocked[i], want) || want == "" && f.blocked[i] != "" {
					t.Errorf("problem %q, want %q", f.blocked[i], want)
				}
			}
		})
	}
}
