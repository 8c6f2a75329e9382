// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build models

package models

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRecordedRenderers checks that the records of the newest renderers, which the unit tests of
// internal/renderer/families read, equal the output of tinker-cookbook for the same conversations today. With -update,
// it writes the records.
func TestRecordedRenderers(t *testing.T) {
	const testdata = "../../internal/renderer/families/testdata"
	venv := exec.CommandContext(t.Context(), "../conformance/venv", "capture")
	venv.Stderr = os.Stderr
	path, err := venv.Output()
	if err != nil {
		t.Fatalf("making the environment of the cookbook: %v", err)
	}
	now := t.TempDir()
	record := exec.CommandContext(t.Context(), filepath.Join(strings.TrimSpace(string(path)), "bin", "python"),
		"renderers.py", testdata, now)
	if out, err := record.CombinedOutput(); err != nil {
		t.Fatalf("recording the renderers: %v\n%s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(now, "*", "*.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the script has written %v, %v", files, err)
	}
	for _, file := range files {
		name, err := filepath.Rel(now, file)
		if err != nil {
			t.Fatal(err)
		}
		recorded := filepath.Join(testdata, name)
		if *update {
			zipped, err := os.ReadFile(file)
			if err == nil {
				err = os.WriteFile(recorded, zipped, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		compareLines(t, name, unzip(t, recorded), unzip(t, file))
	}
}

// compareLines reports the first line that differs.
func compareLines(t *testing.T, name string, want, got []byte) {
	t.Helper()
	wantLines, gotLines := bytes.Split(want, []byte("\n")), bytes.Split(got, []byte("\n"))
	for i := range min(len(wantLines), len(gotLines)) {
		if !bytes.Equal(wantLines[i], gotLines[i]) {
			t.Errorf("%s: line %d is\n%s\nwant as recorded\n%s\n-update records it", name, i+1, gotLines[i], wantLines[i])
			return
		}
	}
	if len(gotLines) != len(wantLines) {
		t.Errorf("%s has %d lines, want %d as recorded: -update records them", name, len(gotLines), len(wantLines))
	}
}
