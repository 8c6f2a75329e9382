// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package groupstore

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/atomicfile"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

var policy = rl.Genesis("spec")

func train(slot int64) rl.Key { return rl.Key{Slot: slot, Lineage: policy} }

func evaluate(index int64) rl.Key {
	return rl.Key{Kind: rl.Evaluate, Slot: index, Lineage: policy, Evaluation: "plan"}
}

// group returns a group that takes some 1,000 bytes as a message.
func group(key rl.Key) rl.Group {
	segment := rl.Segment{Tokens: make([]int32, 120), Actions: make([]bool, 120), Logprobs: make([]float32, 120)}
	segment.Actions[119] = true
	return rl.Group{Key: key, Environment: "env", Members: []rl.Member{{
		Reward: float64(key.Slot), Trajectories: []rl.Trajectory{{Reward: float64(key.Slot),
			Segments: []rl.Segment{segment}}}}}}
}

const groupBytes = 1100

func open(t *testing.T, dir string, memory, disk int64) *Store {
	t.Helper()
	s, err := Open(Config{Dir: dir, MemoryBytes: memory * groupBytes, DiskBytes: disk * groupBytes,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return s
}

// add adds groups that were already offered to a learner.
func add(t *testing.T, s *Store, keys ...rl.Key) (dropped []rl.Key) {
	t.Helper()
	for _, key := range keys {
		if err := s.Add(group(key)); err != nil {
			t.Fatalf("Add: %v", err)
		}
		dropped = append(dropped, s.Offered(key, false)...)
	}
	return dropped
}

func keys(s *Store) []rl.Key {
	var out []rl.Key
	for _, h := range s.List() {
		out = append(out, h.Key)
	}
	return out
}

// check reads every group back.
func check(t *testing.T, s *Store, want ...rl.Key) {
	t.Helper()
	if diff := cmp.Diff(want, keys(s)); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	for _, h := range s.List() {
		got, ok, err := s.Group(h.Key)
		if !ok || err != nil {
			t.Errorf("Group(%v) = %v, %v", h.Key, ok, err)
			continue
		}
		want := group(h.Key)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Group (-want +got):\n%s", diff)
		}
		encoded, err := exchange.EncodeGroup(want)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok, err := s.Encoded(h.Key); !ok || err != nil {
			t.Errorf("Encoded(%v) = %v, %v", h.Key, ok, err)
		} else if diff := cmp.Diff(encoded, got); diff != "" {
			t.Errorf("Encoded (-want +got):\n%s", diff)
		}
		if size := s.entries[h.Key].size; h.Outcome != want.Outcome || size != int64(len(encoded.Message)) {
			t.Errorf("listed as %+v of %d bytes, want %d", h, size, len(encoded.Message))
		}
	}
}

func files(t *testing.T, dir string) int {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestMemoryComesFirst(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 4, 4)
	add(t, s, train(3), evaluate(0), train(1))
	check(t, s, train(1), train(3), evaluate(0))
	if n := files(t, dir); n != 0 {
		t.Errorf("%d files were written with room in memory", n)
	}
}

func TestRoom(t *testing.T) {
	cases := map[string]struct {
		memory, disk int64
		before       []rl.Key
		taken        []rl.Key
		add          rl.Key
		dropped      []rl.Key
		files        int
	}{
		"room in memory": {memory: 3, disk: 3, before: []rl.Key{train(0), train(1)},
			add: train(2), files: 0},
		"then in files": {memory: 1, disk: 3, before: []rl.Key{train(0), train(1)},
			add: train(2), files: 2},
		"then the highest slot goes": {memory: 1, disk: 1, before: []rl.Key{train(5), train(7)},
			add: train(6), dropped: []rl.Key{train(7)}, files: 1},
		"even if it is the newest": {memory: 1, disk: 1, before: []rl.Key{train(5), train(7)},
			add: train(8), dropped: []rl.Key{train(8)}, files: 1},
		"the lowest slot is never refused": {memory: 1, disk: 0, before: []rl.Key{train(5)}, add: train(4),
			dropped: []rl.Key{train(5)}},
		"what the learner has goes before it": {memory: 1, disk: 1, before: []rl.Key{train(5), train(7)},
			taken: []rl.Key{train(5)}, add: train(8), dropped: []rl.Key{train(5)}, files: 1},
		"of what the learner has the highest": {memory: 2, disk: 0, before: []rl.Key{train(5), train(7)},
			taken: []rl.Key{train(5), train(7)}, add: train(8), dropped: []rl.Key{train(7)}},
		"evaluations wait longest": {memory: 2, disk: 0, before: []rl.Key{train(5), evaluate(0)},
			add: train(6), dropped: []rl.Key{evaluate(0)}},
		"one group is kept whatever its size":        {memory: 0, disk: 0, add: train(0)},
		"a group in place of itself takes room once": {memory: 1, disk: 0, before: []rl.Key{train(0)}, add: train(0)},
		"a spilled group in place of itself does, too": {memory: 1, disk: 1, before: []rl.Key{train(0), train(1)},
			add: train(1), files: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir, tc.memory, tc.disk)
			add(t, s, tc.before...)
			for _, key := range tc.taken {
				s.Offered(key, true)
			}
			got := add(t, s, tc.add)
			if diff := cmp.Diff(tc.dropped, got); diff != "" {
				t.Errorf("dropped (-want +got):\n%s", diff)
			}
			for _, key := range tc.dropped {
				if _, ok := s.Lookup(key); ok {
					t.Errorf("%v is dropped and stored", key)
				}
			}
			check(t, s, keys(s)...)
			if n := files(t, dir); n != tc.files {
				t.Errorf("%d files, want %d", n, tc.files)
			}
		})
	}
}

func TestFreshGroupsAreNotDropped(t *testing.T) {
	s := open(t, t.TempDir(), 1, 0)
	for slot := range int64(3) {
		if err := s.Add(group(train(slot))); err != nil {
			t.Fatalf("Add: %v", err)
		}
	}
	check(t, s, train(0), train(1), train(2))
	if dropped := s.Offered(train(0), false); len(dropped) > 0 {
		t.Errorf("%v was dropped while a fresh group was next to go", dropped)
	}
	if diff := cmp.Diff([]rl.Key{train(1)}, s.Offered(train(1), true)); diff != "" {
		t.Errorf("dropped once the learner has one (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]rl.Key{train(2)}, s.Offered(train(2), false)); diff != "" {
		t.Errorf("dropped once all were offered (-want +got):\n%s", diff)
	}
	check(t, s, train(0))
}

func TestForgetTaken(t *testing.T) {
	s := open(t, t.TempDir(), 2, 0)
	add(t, s, train(5), train(6))
	s.Offered(train(5), true)
	s.ForgetTaken()
	if diff := cmp.Diff([]rl.Key{train(7)}, add(t, s, train(7))); diff != "" {
		t.Errorf("dropped (-want +got):\n%s", diff)
	}
}

func TestCover(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 1, 9)
	other := rl.Key{Kind: rl.Evaluate, Lineage: policy, Evaluation: "zzz"}
	add(t, s, train(0), train(1), train(2), evaluate(0), evaluate(1), other)
	s.Cover(2, nil)
	check(t, s, train(2), evaluate(0), other, evaluate(1))
	s.Cover(1, []exchange.Evaluation{{Digest: "plan", Lineage: rl.Genesis("another")}})
	check(t, s, train(2), evaluate(0), other, evaluate(1))
	s.Cover(1, []exchange.Evaluation{{Digest: "plan", Lineage: policy}})
	check(t, s, train(2), other)
	s.Cover(3, []exchange.Evaluation{{Digest: "zzz", Lineage: policy}})
	if n := files(t, dir); n != 0 || s.Len() != 0 || s.memory != 0 || s.disk != 0 {
		t.Errorf("%d files and %d groups of %d + %d bytes are left", n, s.Len(), s.memory, s.disk)
	}
}

func TestFlushedGroupsAreReadByTheNextProcess(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir, 2, 9)
	add(t, first, train(0), train(1), evaluate(0), train(2))
	if err := first.Flush(); err != nil {
		t.Fatalf("Flush: %v", err)
	}
	check(t, first, train(0), train(1), train(2), evaluate(0))
	second := open(t, dir, 2, 9)
	check(t, second, train(0), train(1), train(2), evaluate(0))
	second.Cover(9, []exchange.Evaluation{{Digest: "plan", Lineage: policy}})
	if n := files(t, dir); n != 0 {
		t.Errorf("%d files are left", n)
	}
}

func TestDamagedFilesAreDropped(t *testing.T) {
	damage := map[string]func(t *testing.T, name string){
		"cut":   func(t *testing.T, name string) { edit(t, name, func(b []byte) []byte { return b[:len(b)-1] }) },
		"empty": func(t *testing.T, name string) { edit(t, name, func([]byte) []byte { return nil }) },
		"a bit wrong": func(t *testing.T, name string) {
			edit(t, name, func(b []byte) []byte { b[len(b)-1] ^= 1; return b })
		},
		"of wrong magic": func(t *testing.T, name string) { edit(t, name, func(b []byte) []byte { b[0] ^= 1; return b }) },
		"never finished": func(t *testing.T, name string) { rename(t, name, name+atomicfile.Extension) },
		"of another key": func(t *testing.T, name string) { rename(t, name, path(filepath.Dir(name), train(5))) },
	}
	for name, damageFile := range damage {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first := open(t, dir, 9, 9)
			add(t, first, train(0), train(1))
			if err := first.Flush(); err != nil {
				t.Fatal(err)
			}
			damageFile(t, path(dir, train(0)))
			check(t, open(t, dir, 9, 9), train(1))
			if n := files(t, dir); n != 1 {
				t.Errorf("%d files are left, want 1", n)
			}
		})
	}
}

// TestFilesOfAnotherVersionAreLeft checks that a file of another version is not removed: another build may be able to
// use it, after an upgrade or a rollback.
func TestFilesOfAnotherVersionAreLeft(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir, 9, 9)
	add(t, first, train(0), train(1))
	if err := first.Flush(); err != nil {
		t.Fatal(err)
	}
	edit(t, path(dir, train(0)), func(b []byte) []byte {
		return append([]byte("tinker-operator group 3\nwho knows"), b[len(header(1)):]...)
	})
	check(t, open(t, dir, 9, 9), train(1))
	if n := files(t, dir); n != 2 {
		t.Errorf("%d files are left, want 2", n)
	}
}

// TestGoldenFile shows that version 1 stays as it is.
func TestGoldenFile(t *testing.T) {
	golden, err := os.ReadFile("testdata/train.v1.group")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(path(dir, train(7)), golden, 0o600); err != nil {
		t.Fatal(err)
	}
	check(t, open(t, dir, 9, 9), train(7))
	again := open(t, t.TempDir(), 9, 9)
	add(t, again, train(7))
	if err := again.Flush(); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(path(again.config.Dir, train(7)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(golden, written); diff != "" {
		t.Errorf("a file differs from the recorded one (-golden +got):\n%s", diff)
	}
}

func edit(t *testing.T, name string, change func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, change(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func TestMissingFileIsALostGroup(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 0, 9)
	add(t, s, train(0), train(1))
	edit(t, path(dir, train(1)), func([]byte) []byte { return nil })
	if _, ok, err := s.Group(train(1)); ok || err == nil {
		t.Errorf("Group of a damaged file = %v, %v, want an error", ok, err)
	}
	check(t, s, train(0))
	if _, ok, err := s.Group(train(1)); ok || err != nil {
		t.Errorf("Group = %v, %v, want none", ok, err)
	}
}

func TestFailingDiskCountsAsFull(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spill")
	s := open(t, dir, 2, 9)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]rl.Key{train(3)}, add(t, s, train(1), train(2), train(3))); diff != "" {
		t.Errorf("dropped (-want +got):\n%s", diff)
	}
	check(t, s, train(1), train(2))
}

func TestMemoryAlone(t *testing.T) {
	s := open(t, "", 2, 9)
	if diff := cmp.Diff([]rl.Key{train(3)}, add(t, s, train(1), train(2), train(3))); diff != "" {
		t.Errorf("dropped (-want +got):\n%s", diff)
	}
	if err := s.Flush(); err != nil {
		t.Errorf("Flush: %v", err)
	}
	check(t, s, train(1), train(2))
}

func TestAddRefusesInvalidGroups(t *testing.T) {
	s := open(t, "", 2, 2)
	add(t, s, train(1))
	broken := group(train(1))
	broken.Members = nil
	if err := s.Add(broken); err == nil {
		t.Error("a usable group without members was taken")
	}
	check(t, s, train(1))
}
