// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExtend(t *testing.T) {
	t.Cleanup(func() { further.Store(nil) })
	err := Extend([]byte(`{"date": "2027-01-01",
		"tokenizers": {"own": {"file": "tokenizer.json", "end": "<end>"}}, "models": [
		{"name": "me/new", "family": "qwen3", "tokenizer": "own", "renderers": ["qwen3"]},
		{"name": "Qwen/Qwen3-8B", "family": "qwen3", "tokenizer": "qwen3", "retired": "2027-01-01",
			"renderers": ["qwen3_instruct"]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Model{
		"me/new:peft:1": {Name: "me/new", Family: "qwen3", Renderers: []string{"qwen3"},
			Tokenizer: Tokenizer{Repository: "me/new", File: "tokenizer.json", End: "<end>"}},
		"Qwen/Qwen3-8B": {Name: "Qwen/Qwen3-8B", Family: "qwen3", Retired: "2027-01-01",
			Renderers: []string{"qwen3_instruct"},
			Tokenizer: Tokenizer{Repository: "Qwen/Qwen3-8B", File: "tokenizer.json", End: "<|im_end|>",
				SHA256: "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4"}},
	} {
		got, err := Lookup(name)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s, %v (-want +got):\n%s", name, err, diff)
		}
		if IsEmbedded(name) {
			t.Errorf("%s is embedded, want the row of the extension", name)
		}
	}
	if _, err := Lookup("Qwen/Qwen3-32B"); err != nil || !IsEmbedded("Qwen/Qwen3-32B") {
		t.Errorf("a model of the embedded table: %v", err)
	}
}

func TestExtensionsThatAreRefused(t *testing.T) {
	t.Cleanup(func() { further.Store(nil) })
	for name, tc := range map[string]struct{ data, want string }{
		"no JSON":              {"x", "decoding"},
		"an unknown field":     {`{"modles": []}`, "modles"},
		"no models":            {`{"models": []}`, "no models"},
		"an unknown tokenizer": {`{"models": [{"name": "a/b", "tokenizer": "x", "renderers": ["qwen3"]}]}`, `tokenizer "x"`},
		"an unknown renderer":  {`{"models": [{"name": "a/b", "tokenizer": "qwen3", "renderers": ["x"]}]}`, "qwen3_instruct"},
		"no renderer":          {`{"models": [{"name": "a/b", "tokenizer": "qwen3"}]}`, "chat template"},
		"a variant":            {`{"models": [{"name": "a/b:c", "tokenizer": "qwen3", "renderers": ["qwen3"]}]}`, "colon"},
		"other renderers":      {`{"otherRenderers": ["x"], "models": []}`, "otherRenderers"},
	} {
		if err := Extend([]byte(tc.data)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}
