// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
)

// write writes a file, and the folders above it.
func write(t *testing.T, name, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

// writeLegacy writes a directory as versions without a marker did: one run with one checkpoint, and the files of an
// interrupted save.
func writeLegacy(t *testing.T, dir string) {
	t.Helper()
	run := filepath.Join(dir, "runs", "3f6b_train_0")
	write(t, filepath.Join(run, "run.json"),
		`{"id":"3f6b:train:0","session":"3f6b","baseModel":"m","rank":8,"created":"2026-11-21T12:00:00Z"}`)
	write(t, filepath.Join(run, "weights", "one.json"),
		`{"name":"one","file":"one.4ba69735ca53765e.bin","time":"2026-11-21T12:00:01Z","size":5,`+
			`"sha256":"4ba69735ca53765ed6a709edb56c6ea236b7193a3b29a6b390c346f0f4340e4e"}`)
	write(t, filepath.Join(run, "weights", "one.4ba69735ca53765e.bin"), "state")
	write(t, filepath.Join(run, "weights", "123.tmp"), "half")
}

// TestOpenRefusesForeignDirectory checks that a directory of another program, such as one in which TensorBoard keeps
// its logs, is refused and left as it was.
func TestOpenRefusesForeignDirectory(t *testing.T) {
	cases := map[string]string{
		"TensorBoard logs":  "runs/Nov21_experiment/events.out.tfevents.1",
		"a Python project":  "train.py",
		"a hidden file":     ".git/config",
		"another run.json":  "runs/experiment/run.json",
		"a marker of later": "tinkersim.json",
	}
	for name, file := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, file), `{"version":9}`)
			_, err := checkpoint.Open(dir, newClock().Now, discard)
			if err == nil || !strings.Contains(err.Error(), "directory") {
				t.Errorf("Open = %v, want an error that names the repair", err)
			}
			if diff := cmp.Diff([]string{filepath.Base(file)}, files(t, dir)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOpenLeavesForeignEntries checks that Open removes nothing that the store did not make, even in its own folders.
func TestOpenLeavesForeignEntries(t *testing.T) {
	s, c, dir := newStore(t)
	save(t, s, checkpoint.Save{Path: ref(tinker.KindState, "a"), Data: []byte("a")})
	for _, name := range []string{
		"notes.txt", "tinkersim-runs/Nov21_experiment/events.1", "tinkersim-runs/.DS_Store",
		"tinkersim-runs/3f6b_train_0/.DS_Store",
		"tinkersim-runs/3f6b_train_0/weights/backup.tmp", "tinkersim-runs/3f6b_train_0/weights/model.bin",
	} {
		write(t, filepath.Join(dir, name), "foreign")
	}
	want := files(t, dir)
	again := reopen(t, s, dir, c)
	if diff := cmp.Diff(want, files(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"weights/a"}, names(again.Checkpoints(""))); diff != "" {
		t.Errorf("listing (-want +got):\n%s", diff)
	}
}

// TestOpenEmptyDirectory checks which directories count as empty.
func TestOpenEmptyDirectory(t *testing.T) {
	for _, folder := range []string{"", "lost+found", "runs", "tinkersim-runs"} {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
		open(t, dir, newClock())
	}
}

// TestOpenLegacyDirectory checks that a directory without a marker that tinkersim filled is used as it is, so that
// the version that filled it can read it again.
func TestOpenLegacyDirectory(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	writeLegacy(t, dir)
	s := open(t, dir, c)
	if data, err := s.Read(ref(tinker.KindState, "one")); err != nil || string(data) != "state" {
		t.Errorf("Read = %q, %v", data, err)
	}
	save(t, s, checkpoint.Save{Path: ref(tinker.KindState, "two"), Data: []byte("two")})
	if _, err := os.Stat(filepath.Join(dir, "runs", "3f6b_train_0", "weights", "two.json")); err != nil {
		t.Errorf("the new checkpoint is not where the earlier version looks for it: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "runs", "3f6b_train_0", "weights", "123.tmp")); !os.IsNotExist(err) {
		t.Errorf("the unfinished file was not removed: %v", err)
	}
}
