// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLookup(t *testing.T) {
	cases := map[string]struct {
		name      string
		renderer  string
		tokenizer Tokenizer
	}{
		"a chat model has its family's renderer": {name: "Qwen/Qwen3-8B", renderer: "qwen3",
			tokenizer: Tokenizer{Repository: "Qwen/Qwen3-8B", File: "tokenizer.json",
				SHA256: "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4", End: "<|im_end|>"}},
		"a base model has role_colon": {name: "deepseek-ai/DeepSeek-V3.1-Base", renderer: "role_colon",
			tokenizer: Tokenizer{Repository: "deepseek-ai/DeepSeek-V3.1-Base", File: "tokenizer.json",
				Begin: "<｜begin▁of▁sentence｜>", End: "<｜end▁of▁sentence｜>"}},
		"ranks say whose they are": {name: "moonshotai/Kimi-K2.5", renderer: "kimi_k25",
			tokenizer: Tokenizer{Repository: "moonshotai/Kimi-K2.5", File: "tiktoken.model", Ranks: "kimi_k2",
				SHA256: "b6c497a7469b33ced9c38afb1ad6e47f03f5e5dc05f15930799210ec050c5103", Begin: "[BOS]", End: "[EOS]"}},
		"the simulator's tokenizer is built in": {name: "tinkersim/byte-136k", renderer: "role_colon_end",
			tokenizer: Tokenizer{End: "<|end|>"}},
		"what follows a colon is a variant": {name: "openai/gpt-oss-20b:peft:131072", renderer: "gpt_oss_no_sysprompt",
			tokenizer: Tokenizer{Repository: "openai/gpt-oss-20b", File: "tokenizer.json",
				SHA256: "0614fe83cadab421296e664e1f48f4261fa8fef6e03e63bb75c20f38e37d07d3", Begin: "<|startoftext|>",
				End: "<|return|>"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Lookup(tc.name)
			if err != nil {
				t.Fatalf("Lookup: %v", err)
			}
			if got.Renderer() != tc.renderer {
				t.Errorf("renderer %q, want %q", got.Renderer(), tc.renderer)
			}
			if diff := cmp.Diff(tc.tokenizer, got.Tokenizer); diff != "" {
				t.Errorf("tokenizer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLookupUnknownModel(t *testing.T) {
	_, err := Lookup("nobody/nothing")
	var unknown *UnknownError
	if !errors.As(err, &unknown) || unknown.Model != "nobody/nothing" || len(unknown.Known) != len(All()) {
		t.Fatalf("Lookup of an unknown model: err = %#v", err)
	}
	for _, want := range []string{"model.renderer", "model.tokenizer", "docs/models.md"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the message %q does not say %s", err, want)
		}
	}
}

func isDate(text string) bool {
	_, err := time.Parse(time.DateOnly, text)
	return err == nil
}

// TestServedModels checks that hosted Tinker's newest models are either in the table or named as untested.
func TestServedModels(t *testing.T) {
	for _, name := range []string{"zai-org/GLM-5.3", "zai-org/GLM-5.3-Flash", "deepseek-ai/DeepSeek-V4.1-Flash",
		"moonshotai/Kimi-K3.1-Pro", "thinkingmachines/Inkling", "thinkingmachines/Inkling-Small",
		"thinkingmachines/Inkling-2-Small"} {
		model, err := Lookup(name)
		if reason, untested := UntestedTemplate(name); (err == nil) == untested || err == nil && model.Untested == "" {
			t.Errorf("%s: %v, untested template %q, untested %q", name, err, reason, model.Untested)
		}
	}
}

// TestTableIsValid checks that each row is complete and unique, and has a tokenizer of the table. Every tokenizer must
// be used.
func TestTableIsValid(t *testing.T) {
	var d document
	strict := json.NewDecoder(bytes.NewReader(table))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&d); err != nil {
		t.Fatalf("models.json: %v", err)
	}
	if !isDate(d.Date) {
		t.Errorf("the table has the date %q", d.Date)
	}
	seen, used := map[string]bool{}, map[string]bool{}
	for _, m := range d.Models {
		if seen[m.Name] || m.Name == "" || strings.Contains(m.Name, ":") {
			t.Errorf("model %q is listed twice, or its name is invalid", m.Name)
		}
		if len(m.Renderers) == 0 || slices.Contains(m.Renderers, "") {
			t.Errorf("model %q has renderers %q", m.Name, m.Renderers)
		}
		if m.Family == "" || m.Retired != "" && !isDate(m.Retired) {
			t.Errorf("model %q has family %q and is retired since %q", m.Name, m.Family, m.Retired)
		}
		if _, ok := d.Tokenizers[m.Tokenizer]; !ok {
			t.Errorf("model %q has tokenizer %q, which is not in the table", m.Name, m.Tokenizer)
		}
		seen[m.Name], used[m.Tokenizer] = true, true
	}
	for name, reason := range d.UntestedTemplates {
		if seen[name] || reason == "" {
			t.Errorf("model %q has a row, or no reason why its template is untested: %q", name, reason)
		}
	}
	digest := regexp.MustCompile(`^([0-9a-f]{64})?$`)
	for name, row := range d.Tokenizers {
		if !used[name] || !digest.MatchString(row.SHA256) {
			t.Errorf("tokenizer %q is not used or has an invalid digest: %q", name, row.SHA256)
		}
	}
}
