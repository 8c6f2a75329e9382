// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package scratch

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func open(t *testing.T) *Base {
	t.Helper()
	base, err := Open(filepath.Join(t.TempDir(), "scratch"))
	if err != nil {
		t.Fatal(err)
	}
	return base
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func entries(t *testing.T, dir string) int {
	t.Helper()
	names, err := os.ReadDir(dir)
	must(t, err)
	return len(names)
}

func TestWipeRemovesWhatProgramsMake(t *testing.T) {
	outside := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(outside, "dir"), 0o755), os.WriteFile(filepath.Join(outside, "file"), []byte("x"),
		0o644))
	cases := map[string]func(dir string) error{
		"nothing": func(string) error { return nil },
		"links out": func(dir string) error {
			if err := os.Symlink(outside, filepath.Join(dir, "dir")); err != nil {
				return err
			}
			if err := os.Link(filepath.Join(outside, "file"), filepath.Join(dir, "hard")); err != nil {
				return err
			}
			return os.Symlink(filepath.Join(outside, "file"), filepath.Join(dir, "file"))
		},
		"a link to itself": func(dir string) error { return os.Symlink(".", filepath.Join(dir, "self")) },
		"directories without permissions": func(dir string) error {
			deep := filepath.Join(dir, "a/b/c")
			if err := os.MkdirAll(deep, 0o700); err != nil {
				return err
			}
			for _, name := range []string{"a/b/c", "a/b", "a", "."} {
				if err := os.Chmod(filepath.Join(dir, name), 0); err != nil {
					return err
				}
			}
			return nil
		},
		"a pipe and a socket": func(dir string) error {
			if err := unix.Mknod(filepath.Join(dir, "socket"), unix.S_IFSOCK|0o600, 0); err != nil {
				return err
			}
			return unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600)
		},
		"many files": func(dir string) error {
			for i := range 1100 {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o400); err != nil {
					return err
				}
			}
			return nil
		},
		"a tree deeper than a path is long": func(dir string) error {
			fd, err := unix.Open(dir, openDirectory, 0)
			for i := 0; i < 2100 && err == nil; i++ {
				next := -1
				if err = unix.Mkdirat(fd, "d", 0o700); err == nil {
					next, err = unix.Openat(fd, "d", openDirectory, 0)
				}
				unix.Close(fd)
				fd = next
			}
			unix.Close(fd)
			return err
		},
		"strange names": func(dir string) error {
			for _, name := range []string{"-rf", "\n", " ", "\xff", "*", "..."} {
				if err := os.MkdirAll(filepath.Join(dir, name, "x"), 0o700); err != nil {
					return err
				}
			}
			return nil
		},
	}
	for name, fill := range cases {
		t.Run(name, func(t *testing.T) {
			base := open(t)
			for _, wipe := range []func(string) error{base.Clear, base.Wipe} {
				dir, err := base.Make()
				must(t, err, fill(base.Path(dir)), wipe(dir))
				if left, err := os.ReadDir(base.Path(dir)); len(left) > 0 {
					t.Errorf("got %d entries left (%v), want none", len(left), err)
				}
				must(t, base.Wipe(dir))
			}
			if n := entries(t, base.path); n != 0 {
				t.Errorf("got %d directories left in the base, want none", n)
			}
			if n := entries(t, outside); n != 2 {
				t.Errorf("got %d entries outside, want both untouched", n)
			}
		})
	}
}

// TestWipeRemovesWhatStandsInPlaceOfADirectory replaces directories with a link and a file, as a program can do.
func TestWipeRemovesWhatStandsInPlaceOfADirectory(t *testing.T) {
	base, outside := open(t), t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "file"), nil, 0o600))
	link, err1 := base.Make()
	file, err2 := base.Make()
	must(t, err1, err2, os.Remove(base.Path(link)), os.Symlink(outside, base.Path(link)),
		os.Remove(base.Path(file)), os.WriteFile(base.Path(file), nil, 0o600))
	must(t, base.Wipe(link), base.Wipe(file), base.Wipe("never made"))
	if entries(t, base.path) != 0 || entries(t, outside) != 1 {
		t.Errorf("got %d entries in the base and %d outside, want 0 and 1", entries(t, base.path), entries(t, outside))
	}
}

func TestWriteStaysWithinTheDirectory(t *testing.T) {
	base, outside := open(t), t.TempDir()
	dir, err := base.Make()
	must(t, err, os.Symlink(outside, filepath.Join(base.Path(dir), "out")))
	if err := base.Write(dir, map[string]string{"out/file": "x"}); err == nil {
		t.Error("writing through a link out: got no error")
	}
	must(t, base.Write(dir, map[string]string{"a/b.py": "text"}))
	text, err := os.ReadFile(filepath.Join(base.Path(dir), "a/b.py"))
	if string(text) != "text" || entries(t, outside) != 0 {
		t.Errorf("got %q, %v and %d files outside, want the text and none", text, err, entries(t, outside))
	}
}

func TestOpenWipesWhatIsLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "scratch")
	must(t, os.MkdirAll(filepath.Join(path, "1/a/b"), 0o700), os.WriteFile(filepath.Join(path, "file"), nil, 0o600))
	base, err := Open(path)
	must(t, err)
	if n := entries(t, path); n != 0 {
		t.Errorf("got %d entries, want none", n)
	}
	_, err = base.Make()
	must(t, err)
}

func TestMeasureStopsAtTheLimit(t *testing.T) {
	base := open(t)
	dir, err := base.Make()
	must(t, err)
	for i := range 10 {
		must(t, os.WriteFile(filepath.Join(base.Path(dir), fmt.Sprint(i)), make([]byte, 8192), 0o600))
	}
	must(t, os.Symlink("/", filepath.Join(base.Path(dir), "root")), os.MkdirAll(filepath.Join(base.Path(dir), "d"), 0o700))
	must(t, os.WriteFile(filepath.Join(base.Path(dir), "d/x"), make([]byte, 4096), 0o600),
		os.Chmod(filepath.Join(base.Path(dir), "d"), 0))
	size, err := base.Measure([]string{dir, "never made"}, Size{Bytes: 1 << 20, Files: 100})
	must(t, err)
	if size.Files != 13 || size.Bytes < 10*8192 || size.Bytes > 1<<18 {
		t.Errorf("got %+v, want 13 files of about 90 kB: no link is followed", size)
	}
	if size, err := base.Measure([]string{dir}, Size{Bytes: 1 << 20, Files: 5}); err != nil || size.Files != 6 {
		t.Errorf("got %+v and %v, want it to stop at 6 files", size, err)
	}
	deep := base.Path(dir)
	for range maxDepth + 2 {
		deep = filepath.Join(deep, "d2")
	}
	must(t, os.MkdirAll(deep, 0o700))
	if size, err := base.Measure([]string{dir}, Size{Bytes: 1 << 20, Files: 1000}); err != nil || size.Files != 1001 {
		t.Errorf("a deep tree: got %+v and %v, want more than the limit", size, err)
	}
}
