// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
)

// TestOpenSkipsDamage checks that one damaged file or stray entry costs one checkpoint at most, is logged, and is
// neither removed nor in the way of a later save.
func TestOpenSkipsDamage(t *testing.T) {
	cases := map[string]struct {
		file, data string
		left       []string
	}{
		"an empty record": {"3f6b_train_0/weights/a.json", "", []string{"weights/b"}},
		"a record of another name": {"3f6b_train_0/weights/a.json", `{"name":"c","file":"c.0123456789abcdef.bin"}`,
			[]string{"weights/b"}},
		"a record that points away": {"3f6b_train_0/weights/a.json", `{"name":"a","file":"../../run.json"}`,
			[]string{"weights/b"}},
		"a record that is a stray file": {"3f6b_train_0/weights/c.json", "x", []string{"weights/a", "weights/b"}},
		"a stray file":                  {".DS_Store", "x", []string{"weights/a", "weights/b"}},
		"a stray folder":                {"experiment/events.1", "x", []string{"weights/a", "weights/b"}},
		"a damaged run":                 {"3f6b_train_1/run.json", "{", []string{"weights/a", "weights/b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, c, dir := newStore(t)
			save(t, s, checkpoint.Save{Path: ref(tinker.KindState, "a"), Data: []byte("a")})
			c.advance(-1)
			save(t, s, checkpoint.Save{Path: ref(tinker.KindState, "b"), Data: []byte("b")})
			write(t, filepath.Join(dir, "tinkersim-runs", tc.file), tc.data)
			want := files(t, dir)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			again, err := checkpoint.Open(dir, c.Now, slog.New(slog.NewTextHandler(&log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			if diff := cmp.Diff(tc.left, names(again.Checkpoints(""))); diff != "" {
				t.Errorf("listing (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, files(t, dir)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			entry, _, _ := strings.Cut(tc.file, "/events")
			if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(),
				strings.TrimSuffix(entry, "/run.json")) {
				t.Errorf("the log is %q, want a warning that names %s", log.String(), entry)
			}
			save(t, again, checkpoint.Save{Path: ref(tinker.KindState, "a"), Data: []byte("new"), Overwrite: true})
		})
	}
}

// TestMissingDataIsNotFound checks the error for a checkpoint whose data file was removed by hand.
func TestMissingDataIsNotFound(t *testing.T) {
	s, c, dir := newStore(t)
	target := ref(tinker.KindState, "a")
	save(t, s, checkpoint.Save{Path: target, Data: []byte("a")})
	data, err := filepath.Glob(filepath.Join(dir, "tinkersim-runs", "*", "weights", "*.bin"))
	if err != nil || len(data) != 1 {
		t.Fatalf("data files %v, %v", data, err)
	}
	if err := os.Remove(data[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(target); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("Read = %v, want ErrNotFound", err)
	}
	again := reopen(t, s, dir, c)
	if list := again.Checkpoints(""); len(list) != 0 {
		t.Errorf("listed after reopening: %v", list)
	}
}

// TestUnwritableRecordLeavesNoData checks that a save whose record cannot be written leaves no data file.
func TestUnwritableRecordLeavesNoData(t *testing.T) {
	s, _, dir := newStore(t)
	kind := filepath.Join(dir, "tinkersim-runs", "3f6b_train_0", "weights")
	if err := os.MkdirAll(filepath.Join(kind, "a.json", "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	want := files(t, dir)
	if _, err := s.Save(t.Context(), checkpoint.Save{Path: ref(tinker.KindState, "a"), Data: []byte("a")}); err == nil {
		t.Error("the save succeeded")
	}
	if diff := cmp.Diff(want, files(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
