// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// counted counts reads.
type counted struct {
	reads int
	err   error
}

func (c *counted) read(_ context.Context, _ *v1alpha1.TrainingRun, step int64, _ bool) (transcript.Step, []int64,
	error) {
	c.reads++
	return transcript.Step{Step: step, Lineage: "l", Groups: []transcript.Group{{Slot: 7}}}, []int64{1, step}, c.err
}

func open(t *testing.T, folder string, now func() time.Time) *Cache {
	t.Helper()
	c, err := Open(folder, now)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newRun(uid string, committed int64, attempts ...v1alpha1.Attempt) *v1alpha1.TrainingRun {
	run := &v1alpha1.TrainingRun{}
	run.UID, run.Status.Step, run.Status.Attempts = types.UID(uid), &committed, attempts
	return run
}

func TestTranscriptsAreReadOnce(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "transcripts")
	from := &counted{}
	run := newRun("a", 40, v1alpha1.Attempt{Number: 1, FromStep: new(int64(0))})
	want := transcript.Step{Step: 36, Lineage: "l", Groups: []transcript.Group{{Slot: 7}}}
	for range 3 { // each time as another program
		read := open(t, folder, time.Now).Wrap(from.read)
		got, steps, err := read(t.Context(), run, 36, false)
		if diff := cmp.Diff(want, got); diff != "" || err != nil || len(steps) != 2 {
			t.Fatalf("%v, the steps %v: %s", err, steps, diff)
		}
	}
	if from.reads != 1 {
		t.Errorf("the transcript is read %d times", from.reads)
	}
	read := open(t, folder, time.Now).Wrap(from.read)
	// Each of these calls asks for another transcript: the evaluation, the transcript of a step that a later attempt made
	// again, and the newest of a run that continued.
	for i, ask := range []func() (transcript.Step, []int64, error){
		func() (transcript.Step, []int64, error) { return read(t.Context(), run, 36, true) },
		func() (transcript.Step, []int64, error) {
			return read(t.Context(), newRun("a", 40, v1alpha1.Attempt{Number: 2, FromStep: new(int64(30))}), 36, false)
		},
		func() (transcript.Step, []int64, error) { return read(t.Context(), run, newest, false) },
		func() (transcript.Step, []int64, error) { return read(t.Context(), newRun("a", 41), newest, false) },
	} {
		if _, _, err := ask(); err != nil || from.reads != i+2 {
			t.Errorf("question %d: %d are read, %v", i, from.reads, err)
		}
	}
	// An attempt that begins after the step leaves the step as it is.
	later := newRun("a", 60, v1alpha1.Attempt{Number: 3, FromStep: new(int64(50))},
		v1alpha1.Attempt{Number: 1, FromStep: new(int64(0))})
	if _, _, err := read(t.Context(), later, 36, false); err != nil || from.reads != 5 {
		t.Errorf("a later attempt has the transcript read again: %d, %v", from.reads, err)
	}
	from.err = errors.New("no pod")
	for range 2 {
		if _, _, err := read(t.Context(), run, 12, false); err == nil {
			t.Error("a failure is no error")
		}
	}
	if from.reads != 7 {
		t.Errorf("failures are kept: %d reads", from.reads)
	}
}

func TestFilesAreTheUsersAlone(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "transcripts")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	read := open(t, folder, time.Now).Wrap((&counted{}).read)
	if _, _, err := read(t.Context(), newRun("a", 4), 1, false); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(folder, "*"+extension))
	if err != nil || len(names) != 1 {
		t.Fatalf("the folder has %v, %v", names, err)
	}
	for name, want := range map[string]os.FileMode{folder: 0o700, names[0]: 0o600} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has the mode %s, %v", name, info.Mode(), err)
		}
	}
}

func TestDamagedFilesAreReadAgain(t *testing.T) {
	folder := t.TempDir()
	from := &counted{}
	read := open(t, folder, time.Now).Wrap(from.read)
	run := newRun("a", 4)
	for n, damage := range [][]byte{nil, []byte("no digest"), []byte("00\nabc"), {}} {
		name := filepath.Join(folder, nameOf(run, 1, false))
		if damage != nil {
			if err := os.WriteFile(name, damage, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, _, err := read(t.Context(), run, 1, false); err != nil || got.Step != 1 || from.reads != n+1 {
			t.Errorf("damage %d: %+v, %v, %d reads", n, got, err, from.reads)
		}
	}
}

func TestFoldersAreBounded(t *testing.T) {
	folder := t.TempDir()
	now := time.Now()
	c := open(t, folder, func() time.Time { return now })
	read := c.Wrap((&counted{}).read)
	files := func() int {
		names, err := filepath.Glob(filepath.Join(folder, "*"+extension))
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	ask := func(step int64) {
		if _, _, err := read(t.Context(), newRun("a", 9), step, false); err != nil {
			t.Fatal(err)
		}
	}
	ask(1)
	info, err := os.Stat(filepath.Join(folder, nameOf(newRun("a", 9), 1, false)))
	if err != nil {
		t.Fatal(err)
	}
	c.most = 3*info.Size() + info.Size()/2
	for step := int64(2); step < 9; step++ {
		now = now.Add(time.Minute)
		ask(step)
	}
	if got := files(); got != 3 {
		t.Errorf("%d files are kept, want 3", got)
	}
	if err := os.WriteFile(filepath.Join(folder, "notes.txt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	now = now.Add(Lifetime + time.Hour)
	open(t, folder, func() time.Time { return now })
	if got := files(); got != 0 {
		t.Errorf("%d old files are kept", got)
	}
	if _, err := os.Stat(filepath.Join(folder, "notes.txt")); err != nil {
		t.Error("a file that is no transcript is removed")
	}
}
