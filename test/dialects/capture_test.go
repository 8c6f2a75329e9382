// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build conformance

package dialects

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// captures is the file from which the gateway's tests read the prompts that tinker-cookbook's capture proxy makes.
const captures = "../../internal/gateway/testdata/capture.jsonl.gz"

// TestCaptureProxy compares the output of tinker-cookbook's capture proxy for conversations with the recorded output.
func TestCaptureProxy(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "../conformance/venv", "capture").Output()
	if err != nil {
		t.Fatalf("making the virtual environment: %v", err)
	}
	var now, log bytes.Buffer
	cmd := exec.CommandContext(t.Context(), strings.TrimSpace(string(out))+"/bin/python", "capture.py",
		"../../internal/renderer/families/testdata/tokenizers")
	cmd.Stdout, cmd.Stderr = &now, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("capture.py: %v\n%s", err, log.Bytes())
	}
	if *update {
		var zipped bytes.Buffer
		w, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression) // The level is legal.
		_, err := w.Write(now.Bytes())
		if err := errors.Join(err, w.Close(), os.WriteFile(captures, zipped.Bytes(), 0o644)); err != nil {
			t.Fatal(err)
		}
		return
	}
	file, err := os.Open(captures)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	reader, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	was, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(was), "\n"), strings.Split(now.String(), "\n")); diff != "" {
		t.Errorf("the proxy makes other prompts than the recorded ones (-want +got); -update records them:\n%s", diff)
	}
}
