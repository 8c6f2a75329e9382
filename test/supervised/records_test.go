// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build conformance

package supervised

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"
)

const (
	recordedExamples = "../../internal/supervised/testdata/cookbook.jsonl.gz"
	newestExamples   = "../../internal/supervised/testdata/cookbook-next.jsonl.gz"
	conversations    = "../../internal/supervised/testdata/conversations.jsonl"
	tokenizers       = "../../internal/renderer/families/testdata/tokenizers"
)

// TestRecordedExamples compares the examples that the unit tests of internal/supervised read with the examples of both
// versions, and of the renderers that only the next version has.
func TestRecordedExamples(t *testing.T) {
	for i, c := range versions(t) {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "records.jsonl")
			c.run(t, "", "records.py", tokenizers, conversations, out)
			checkRecorded(t, recordedExamples, []byte(read(t, out)), i == 0)
			if c.path != "" {
				c.run(t, "", "records.py", tokenizers, conversations, out, "--newest")
				checkRecorded(t, newestExamples, []byte(read(t, out)), true)
			}
		})
	}
}

// checkRecorded compares lines with a recorded file. With -update it first writes the file, if isSource is set.
func checkRecorded(t *testing.T, file string, lines []byte, isSource bool) {
	t.Helper()
	if *update && isSource {
		var zipped bytes.Buffer
		z, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := z.Write(lines); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, zipped.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, got := bytes.Split(unzip(t, file), []byte("\n")), bytes.Split(lines, []byte("\n"))
	if len(got) != len(want) {
		t.Fatalf("%d lines, want %d as recorded: run the test with -update", len(got), len(want))
	}
	for i := range got {
		if !bytes.Equal(got[i], want[i]) {
			t.Errorf("line %d is\n%s\nwant as recorded\n%s", i+1, got[i], want[i])
		}
	}
}

func unzip(t *testing.T, file string) []byte {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
