// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/transcript"
	"github.com/tinker-operator/tinker-operator/internal/transcript/delivery"
)

func TestPrintTranscript(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "uid", "episodes", "000000003-abc.jsonl.gz")
	data, err := transcript.EncodeLines(transcript.Line{Step: 3}, []transcript.TaskGroup{{Recorded: true}},
		transcript.Trained{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if code := printTranscript(t.Context(), []string{"--dir", dir, "--run-uid", "uid"}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	if got, err := delivery.Read(&stdout); err != nil || !strings.HasPrefix(string(got.Transcript), `{"step":3,`) {
		t.Errorf("the output is %+v, %v", got, err)
	}
	stdout.Reset()
	if code := printTranscript(t.Context(), []string{"--dir", dir, "--run-uid", "uid", "--files"}, &stdout,
		&stderr); code != 0 {
		t.Fatalf("--files: exit code %d: %s", code, stderr.String())
	}
	const file = "episodes/000000003-abc.jsonl.gz"
	if got, err := delivery.Read(&stdout); err != nil || len(got.Files) != 1 || got.Files[0].Name != file {
		t.Errorf("--files: got %+v, %v", got, err)
	}
	stdout.Reset()
	copied := "--copy=" + delivery.FormatRanges([]delivery.Range{{file, file}})
	if code := printTranscript(t.Context(), []string{"--dir", dir, "--run-uid", "uid", copied}, &stdout,
		&stderr); code != 0 {
		t.Fatalf("--copy: exit code %d: %s", code, stderr.String())
	}
	if got, err := delivery.Read(&stdout); err != nil || got.Part == nil || !bytes.Equal(got.Part.Data, data) {
		t.Errorf("--copy: got %+v, %v", got, err)
	}
	for _, args := range [][]string{{}, {"--run-uid", "uid", "--steps", "3"}, {"--run-uid", "uid", "--copy", "*"}} {
		if code := printTranscript(t.Context(), args, &stdout, &stderr); code != 2 {
			t.Errorf("%v: exit code %d, want 2", args, code)
		}
	}
}
