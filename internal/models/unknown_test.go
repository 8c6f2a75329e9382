// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"errors"
	"strings"
	"testing"
)

func TestUnknownModelSuggestsTheNearest(t *testing.T) {
	for name, want := range map[string]string{
		"Qwen/Qwen3-8b":     "did you mean Qwen/Qwen3-8B?",
		"qwen3-8b":          "",
		"Qwen/Qwen3-8":      "did you mean Qwen/Qwen3-8B?",
		"tinkersim/byte136": "did you mean tinkersim/byte-136k?",
		"nobody/nothing":    "",
		"":                  "",
	} {
		_, err := Lookup(name)
		var unknown *UnknownError
		if !errors.As(err, &unknown) {
			t.Fatalf("Lookup(%q) = %v", name, err)
		}
		text := err.Error()
		if strings.Contains(text, "did you mean") != (want != "") || !strings.Contains(text, want) {
			t.Errorf("%q: %s, want %q", name, text, want)
		}
		for _, part := range []string{"model.name", "model.renderer", "model.tokenizer", "docs/models.md"} {
			if !strings.Contains(text, part) {
				t.Errorf("%q: the message lacks %s", name, part)
			}
		}
		if len(text) > 300 {
			t.Errorf("%q: the message has %d bytes", name, len(text))
		}
	}
}
