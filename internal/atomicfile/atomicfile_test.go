// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWriteReplacesTheFile(t *testing.T) {
	cases := map[string]func(string, fs.FileMode, ...[]byte) error{"Write": Write, "WriteDurable": WriteDurable}
	for name, write := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "file")
			for _, want := range []string{"old and long", "new"} {
				if err := write(path, 0o640, []byte(want[:1]), []byte(want[1:])); err != nil {
					t.Fatal(err)
				}
				if got, err := os.ReadFile(path); err != nil || string(got) != want {
					t.Errorf("the file is %q, %v, want %q", got, err, want)
				}
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("mode %v, %v, want 0640", info.Mode(), err)
			}
			expectFiles(t, dir, 1)
		})
	}
}

func TestWriteThatFailsLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.MkdirAll(filepath.Join(path, "child"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, 0o644, []byte("text")); err == nil {
		t.Error("a folder was replaced by a file")
	}
	expectFiles(t, dir, 1)
	if err := Write(filepath.Join(dir, "missing", "file"), 0o644); err == nil {
		t.Error("a file was written into a folder that does not exist")
	}
}

func expectFiles(t *testing.T, dir string, want int) {
	t.Helper()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != want {
		t.Errorf("the folder has %d files, %v, want %d", len(entries), err, want)
	}
}

func TestReplaceDurableReturnsTheNewFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	file, err := ReplaceDurable(path, 0o640, []byte("begun, "))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := WriteDurable(path, 0o640, []byte("replaced")); err != nil {
		t.Fatal(err)
	}
	// What is appended to the replaced file does not reach its replacement.
	if _, err := file.WriteString("continued"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "replaced" {
		t.Errorf("the file has %q, %v", got, err)
	}
	whole := make([]byte, 32)
	if n, _ := file.ReadAt(whole, 0); string(whole[:n]) != "begun, continued" {
		t.Errorf("the file that was returned has %q", whole[:n])
	}
}

func TestCopyDurableThatIsNotAccepted(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	accept := func(_ io.ReaderAt, size int64) error {
		if size != 3 {
			return errors.New("not three bytes")
		}
		return nil
	}
	if err := CopyDurable(path, 0o640, strings.NewReader("old"), accept); err != nil {
		t.Fatal(err)
	}
	if err := CopyDurable(path, 0o640, strings.NewReader("too long"), accept); err == nil || !strings.Contains(err.Error(),
		"not three bytes") {
		t.Errorf("the error is %v", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "old" {
		t.Errorf("the file has %q, %v", got, err)
	}
	expectFiles(t, dir, 1)
}

// TestDurableFilesAreFlushed checks the order of flushes: the file is flushed before it has its name, and then the
// folder with the name is flushed before the call returns. Without either, a file that was acknowledged could be
// missing after a power failure.
func TestDurableFilesAreFlushed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	exists := func() bool {
		_, err := os.Stat(path)
		return err == nil
	}
	var flushed []string
	file, err := replaceDurable(func(f *os.File) error {
		switch name := f.Name(); {
		case name == dir && exists():
			flushed = append(flushed, "folder with the name")
		case name != dir && !exists():
			flushed = append(flushed, "file without the name")
		default:
			flushed = append(flushed, name)
		}
		return f.Sync()
	}, path, 0o600, write([][]byte{[]byte("content")}))
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"file without the name", "folder with the name"}; !slices.Equal(flushed, want) {
		t.Errorf("flushed %q, want %q", flushed, want)
	}
}

func TestFolderThatCannotBeFlushed(t *testing.T) {
	dir, failure := t.TempDir(), errors.New("the disk is broken")
	_, err := replaceDurable(func(f *os.File) error {
		if f.Name() == dir {
			return failure
		}
		return nil
	}, filepath.Join(dir, "file"), 0o600, write(nil))
	if !errors.Is(err, failure) {
		t.Errorf("replaceDurable = %v, want the error of the folder", err)
	}
}
