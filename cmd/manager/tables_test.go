// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/models"
	"github.com/tinker-operator/tinker-operator/internal/prices"
)

func TestTables(t *testing.T) {
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key := keyFile(t, 32)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"none": {},
		"both": {args: []string{"--models-file=" + file("models", `{"models": [{"name": "me/listed", "tokenizer": "qwen3",
			"renderers": ["qwen3"]}]}`), "--prices-file=" + file("prices", `[{"tinker_id": "me/listed", "prefill": "$1",
			"cached_prefill": "$0.2", "sample": "$2", "train": "$3"}]`)}},
		"no file":        {args: []string{"--models-file=/nowhere"}, want: "--models-file"},
		"another format": {args: []string{"--prices-file=" + file("prices", "x")}, want: "--prices-file"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parsed(t, append([]string{"--image=i", "--manager-key-file=" + key}, tc.args...)...)
			if err != nil {
				t.Fatal(err)
			}
			err = o.readTables()
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	if _, err := models.Lookup("me/listed"); err != nil {
		t.Error(err)
	}
	if _, ok := prices.Of("me/listed"); !ok {
		t.Error("the price of me/listed is not known")
	}
}
