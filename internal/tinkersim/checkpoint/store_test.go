// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
)

// discard is a log that drops its entries.
var discard = slog.New(slog.DiscardHandler)

const runID = "3f6b:train:0"

// clock is a clock that the test advances.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func (c *clock) advance(d time.Duration) { c.now = c.now.Add(d) }

func newClock() *clock { return &clock{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)} }

// open opens a directory until the test ends or the store is closed.
func open(t *testing.T, dir string, c *clock) *checkpoint.Store {
	t.Helper()
	s, err := checkpoint.Open(dir, c.Now, discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// reopen closes a store and opens its directory again.
func reopen(t *testing.T, s *checkpoint.Store, dir string, c *clock) *checkpoint.Store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, dir, c)
}

// newStore returns a store with one run.
func newStore(t *testing.T) (*checkpoint.Store, *clock, string) {
	t.Helper()
	c, dir := newClock(), t.TempDir()
	s := open(t, dir, c)
	run := checkpoint.Run{ID: runID, Session: "3f6b", BaseModel: "m", Rank: 8, Created: c.Now(),
		UserMetadata: map[string]string{"run": "a"}}
	if err := s.CreateRun(run); err != nil {
		t.Fatal(err)
	}
	return s, c, dir
}

func ref(kind tinker.Kind, name string) tinker.Path {
	return tinker.Path{Run: runID, Kind: kind, Name: name}
}

func save(t *testing.T, s *checkpoint.Store, save checkpoint.Save) {
	t.Helper()
	if _, err := s.Save(t.Context(), save); err != nil {
		t.Fatal(err)
	}
}

func names(list []checkpoint.Checkpoint) []string {
	var names []string
	for _, c := range list {
		names = append(names, string(c.Kind)+"/"+c.Name)
	}
	return names
}

// files returns the names of the regular files below a folder.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			found = append(found, filepath.Base(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestSaveSurvivesReopening(t *testing.T) {
	s, c, dir := newStore(t)
	c.advance(time.Second)
	save(t, s, checkpoint.Save{Path: ref(tinker.KindState, "0001"), Data: []byte("state"),
		UserMetadata: map[string]string{"step": "1"}})
	c.advance(time.Second)
	save(t, s, checkpoint.Save{Path: ref(tinker.KindSampler, "s.1_a-B"), Data: []byte("weights"), TTL: time.Hour})
	save(t, s, checkpoint.Save{Path: ref(checkpoint.Ephemeral, "0"), Data: []byte("weights")})
	want := s.Checkpoints("")
	if diff := cmp.Diff([]string{"sampler_weights/s.1_a-B", "weights/0001"}, names(want)); diff != "" {
		t.Fatalf("listing (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"step": "1"}, want[1].UserMetadata); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}

	again := reopen(t, s, dir, c)
	if diff := cmp.Diff(want, again.Checkpoints("")); diff != "" {
		t.Errorf("listing after reopening (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, again.Checkpoints(runID)); diff != "" {
		t.Errorf("listing of the run (-want +got):\n%s", diff)
	}
	data, err := again.Read(ref(tinker.KindState, "0001"))
	if err != nil || string(data) != "state" {
		t.Errorf("Read = %q, %v", data, err)
	}
	if _, err := again.Read(ref(checkpoint.Ephemeral, "0")); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("Read of an ephemeral checkpoint after reopening: %v, want ErrNotFound", err)
	}
	runs := again.Runs()
	if len(runs) != 1 || runs[0].UserMetadata["run"] != "a" || !runs[0].LastRequest.Equal(c.Now()) {
		t.Errorf("Runs() = %+v", runs)
	}
}

func TestSaveErrors(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	cases := map[string]struct {
		ctx  context.Context
		save checkpoint.Save
		want error
	}{
		"a name that exists":  {t.Context(), checkpoint.Save{Path: ref(tinker.KindState, "old")}, checkpoint.ErrExists},
		"a name with a slash": {t.Context(), checkpoint.Save{Path: ref(tinker.KindState, "a/b")}, checkpoint.ErrName},
		"a name that goes up": {t.Context(), checkpoint.Save{Path: ref(tinker.KindState, "..")}, checkpoint.ErrName},
		"an empty name":       {t.Context(), checkpoint.Save{Path: ref(tinker.KindState, "")}, checkpoint.ErrName},
		"a run that is missing": {t.Context(), checkpoint.Save{Path: tinker.Path{Run: "x", Kind: tinker.KindState,
			Name: "a"}}, checkpoint.ErrNotFound},
		"a canceled save": {canceled, checkpoint.Save{Path: ref(tinker.KindState, "new")}, context.Canceled},
		"a canceled overwrite": {
			canceled, checkpoint.Save{Path: ref(tinker.KindState, "old"), Data: []byte("new"), Overwrite: true},
			context.Canceled,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, _, dir := newStore(t)
			save(t, s, checkpoint.Save{Path: ref(tinker.KindState, "old"), Data: []byte("old")})
			before := files(t, dir)
			if _, err := s.Save(tc.ctx, tc.save); !errors.Is(err, tc.want) {
				t.Errorf("Save = %v, want %v", err, tc.want)
			}
			if diff := cmp.Diff([]string{"weights/old"}, names(s.Checkpoints(""))); diff != "" {
				t.Errorf("listing (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, files(t, dir)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSaveOverwrites(t *testing.T) {
	s, c, dir := newStore(t)
	target := ref(tinker.KindState, "a")
	for _, data := range []string{"one", "two", "two"} {
		save(t, s, checkpoint.Save{Path: target, Data: []byte(data), Overwrite: true})
		if got, err := s.Read(target); err != nil || string(got) != data {
			t.Errorf("Read = %q, %v, want %q", got, err, data)
		}
		s = reopen(t, s, dir, c)
		if got, err := s.Read(target); err != nil || string(got) != data {
			t.Errorf("Read after reopening = %q, %v, want %q", got, err, data)
		}
	}
	if got := files(t, dir); len(got) != 5 {
		t.Errorf("files = %v, want the marker, the lock, run.json, one record and its data", got)
	}
}

func TestOpenRemovesUnfinishedSaves(t *testing.T) {
	s, c, dir := newStore(t)
	save(t, s, checkpoint.Save{Path: ref(tinker.KindState, "a"), Data: []byte("a")})
	want := files(t, dir)
	unfinished := []string{
		"tinkersim-runs/3f6b_train_0/weights/b.0123456789abcdef.bin",
		"tinkersim-runs/3f6b_train_0/weights/.tinkersim-77.tmp",
		"tinkersim-runs/3f6b_train_0/88.tmp",
		"tinkersim-runs/.tinkersim-99.tmp/run.json",
		".tinkersim-11.tmp",
	}
	for _, name := range unfinished {
		write(t, filepath.Join(dir, name), "half")
	}
	again := reopen(t, s, dir, c)
	if diff := cmp.Diff(want, files(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"weights/a"}, names(again.Checkpoints(""))); diff != "" {
		t.Errorf("listing (-want +got):\n%s", diff)
	}
}

func TestExpiry(t *testing.T) {
	s, c, dir := newStore(t)
	save(t, s, checkpoint.Save{Path: ref(tinker.KindState, "short"), Data: []byte("a"), TTL: time.Minute})
	save(t, s, checkpoint.Save{Path: ref(tinker.KindState, "long"), Data: []byte("b"), TTL: time.Hour})
	save(t, s, checkpoint.Save{Path: ref(tinker.KindState, "kept"), Data: []byte("c"), TTL: time.Minute})
	save(t, s, checkpoint.Save{Path: ref(tinker.KindState, "ever"), Data: []byte("d")})
	if err := s.SetTTL(ref(tinker.KindState, "kept"), 0); err != nil {
		t.Fatal(err)
	}
	c.advance(time.Minute - 1)
	if _, err := s.Read(ref(tinker.KindState, "short")); err != nil {
		t.Errorf("just before it expires: %v", err)
	}
	c.advance(1)
	if _, err := s.Read(ref(tinker.KindState, "short")); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("when it expires: %v, want ErrNotFound", err)
	}
	if err := s.SetTTL(ref(tinker.KindState, "ever"), 30*time.Minute); err != nil {
		t.Fatal(err)
	}
	c.advance(30 * time.Minute)
	if diff := cmp.Diff([]string{"weights/kept", "weights/long"}, names(s.Checkpoints(""))); diff != "" {
		t.Errorf("after 31 min (-want +got):\n%s", diff)
	}
	c.advance(time.Hour)
	again := reopen(t, s, dir, c)
	if diff := cmp.Diff([]string{"weights/kept"}, names(again.Checkpoints(""))); diff != "" {
		t.Errorf("reopened after 91 min (-want +got):\n%s", diff)
	}
	save(t, again, checkpoint.Save{Path: ref(tinker.KindState, "short"), Data: []byte("a")}) // the name can be used again
}

func TestEdits(t *testing.T) {
	target := ref(tinker.KindState, "a")
	cases := map[string]func(*checkpoint.Store, tinker.Path) error{
		"delete":  (*checkpoint.Store).Delete,
		"damage":  (*checkpoint.Store).Damage,
		"ttl":     func(s *checkpoint.Store, ref tinker.Path) error { return s.SetTTL(ref, time.Hour) },
		"publish": func(s *checkpoint.Store, ref tinker.Path) error { return s.SetPublic(ref, true) },
	}
	after := map[string]func(*checkpoint.Store) error{
		"delete": func(s *checkpoint.Store) error {
			if _, err := s.Checkpoint(target); !errors.Is(err, checkpoint.ErrNotFound) {
				return fmt.Errorf("Checkpoint = %w, want ErrNotFound", err)
			}
			return nil
		},
		"damage": func(s *checkpoint.Store) error {
			if _, err := s.Read(target); !errors.Is(err, checkpoint.ErrCorrupt) {
				return fmt.Errorf("Read = %w, want ErrCorrupt", err)
			}
			return nil
		},
		"ttl": func(s *checkpoint.Store) error {
			got, err := s.Checkpoint(target)
			if err != nil || !got.Expires.Equal(newClock().Now().Add(time.Hour)) {
				return fmt.Errorf("Expires = %v, %w", got.Expires, err)
			}
			return nil
		},
		"publish": func(s *checkpoint.Store) error {
			if got, err := s.Checkpoint(target); err != nil || !got.Public {
				return fmt.Errorf("Public = %v, %w", got.Public, err)
			}
			return nil
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			s, c, dir := newStore(t)
			save(t, s, checkpoint.Save{Path: target, Data: []byte("data")})
			if err := change(s, ref(tinker.KindState, "missing")); !errors.Is(err, checkpoint.ErrNotFound) {
				t.Errorf("on a missing checkpoint: %v, want ErrNotFound", err)
			}
			if err := change(s, target); err != nil {
				t.Fatal(err)
			}
			if err := after[name](s); err != nil {
				t.Errorf("before reopening: %v", err)
			}
			if err := after[name](reopen(t, s, dir, c)); err != nil {
				t.Errorf("reopened: %v", err)
			}
		})
	}
}

func TestEphemeralLimit(t *testing.T) {
	s, c, dir := newStore(t)
	for i := range 70 {
		c.advance(time.Second)
		save(t, s, checkpoint.Save{Path: ref(checkpoint.Ephemeral, fmt.Sprint(i)), Data: []byte{byte(i)}})
	}
	if _, err := s.Read(ref(checkpoint.Ephemeral, "5")); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("the 65th newest: %v, want ErrNotFound", err)
	}
	if _, err := s.Read(ref(checkpoint.Ephemeral, "6")); err != nil {
		t.Errorf("the 64th newest: %v", err)
	}
	if got := len(files(t, dir)); got != 3+2*64 {
		t.Errorf("%d files, want the files of 64 checkpoints", got)
	}
}
