// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExportBase(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "base")
	var printed strings.Builder
	if err := exportBase([]string{"--model", "tinkersim/byte-136k-countdown", dir}, &printed); err != nil {
		t.Fatal(err)
	}
	var got []string
	for name := range strings.Lines(printed.String()) {
		if info, err := os.Stat(strings.TrimSpace(name)); err != nil || info.Size() == 0 {
			t.Errorf("the file is missing or empty: %v", err)
		}
		got = append(got, filepath.Base(strings.TrimSpace(name)))
	}
	if diff := cmp.Diff([]string{"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"},
		got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestExportBaseRefusesBadArguments(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "other"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"name one folder":       {},
		"is not empty":          {full},
		`--model "x" is`:        {"--model", "x", filepath.Join(full, "new")},
		"flag provided but not": {"--other", filepath.Join(full, "new")},
	} {
		if err := exportBase(args, io.Discard); !errors.Is(err, errUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: the error is %v, want one of usage with %q", args, err, want)
		}
	}
	if entries, err := os.ReadDir(full); err != nil || len(entries) != 1 {
		t.Errorf("the folder was changed: %v, %v", entries, err)
	}
}
