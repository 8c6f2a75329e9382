// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"github.com/tinker-operator/tinker-operator/internal/atomicfile"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// The names in a data directory. The previous layout had no marker and used the folder legacyRuns.
const (
	markerFile = "tinkersim.json"
	lockFile   = "tinkersim.lock"
	ownRuns    = "tinkersim-runs"
	legacyRuns = "runs"
)

// markerVersion is the version of the layout.
const markerVersion = 1

// marker is the content of the file that marks a directory as tinkersim's.
type marker struct {
	Version int `json:"version"`
	// Runs is the name of the folder of the runs.
	Runs string `json:"runs"`
}

// layout returns the paths in a data directory.
type layout struct {
	// runs is the folder of the runs.
	runs string
}

func (l layout) runDir(run string) string { return filepath.Join(l.runs, folder(run)) }

func (l layout) kindDir(ref tinker.Path) string {
	return filepath.Join(l.runDir(ref.Run), string(ref.Kind))
}

func (l layout) recordFile(ref tinker.Path) string {
	return filepath.Join(l.kindDir(ref), ref.Name+".json")
}

// inspect decides whether a directory can be used, without changing it. It returns the marker that the
// directory has or should get.
func inspect(dir string) (marker, error) {
	var found marker
	err := readJSON(filepath.Join(dir, markerFile), &found)
	switch {
	case os.IsNotExist(err):
		return newMarker(dir)
	case err != nil:
		return marker{}, err
	case found.Version != markerVersion || (found.Runs != ownRuns && found.Runs != legacyRuns):
		return marker{},
			fmt.Errorf("reading %s: another version of tinkersim wrote it; use that version or another directory", markerFile)
	}
	return found, nil
}

// newMarker returns the marker of a directory that has none: one that is empty, or that an earlier version of
// tinkersim filled. Such a directory keeps its layout, so that the earlier version can still read it.
func newMarker(dir string) (marker, error) {
	for _, runs := range []string{ownRuns, legacyRuns} {
		own, err := hasRuns(filepath.Join(dir, runs))
		if err != nil {
			return marker{}, err
		}
		if own {
			return marker{Version: markerVersion, Runs: runs}, nil
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return marker{}, err
	}
	runs := ownRuns
	for _, entry := range entries {
		switch name := entry.Name(); {
		case name == legacyRuns && isEmpty(filepath.Join(dir, name)): // an earlier version that was never used
			runs = legacyRuns
		case !isReserved(name):
			return marker{}, fmt.Errorf("checking %s: it contains %q, which is not tinkersim's; use an empty or a new directory",
				dir, name)
		}
	}
	return marker{Version: markerVersion, Runs: runs}, nil
}

// isReserved reports whether an entry may be in a directory that counts as empty: files of an interrupted start, and
// files that the file system itself puts into a new volume.
func isReserved(name string) bool {
	return name == ownRuns || name == lockFile || name == "lost+found" || isTemporary(name)
}

// hasRuns reports whether a folder contains a run.
func hasRuns(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, entry := range entries {
		if _, err := readRun(filepath.Join(dir, entry.Name())); err == nil {
			return true, nil
		}
	}
	return false, nil
}

// readRun reads the description of the run in a folder, which must have the folder's name.
func readRun(dir string) (Run, error) {
	var run Run
	if err := readJSON(filepath.Join(dir, runFile), &run); err != nil {
		return Run{}, err
	}
	if folder(run.ID) != filepath.Base(dir) {
		return Run{}, fmt.Errorf("reading %s: it describes the run %q, which has another folder", runFile, run.ID)
	}
	return run, nil
}

// lockDir locks a directory until the lock is released or the process ends.
func lockDir(dir string) (*flock.Flock, error) {
	lock := flock.New(filepath.Join(dir, lockFile))
	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	if !locked {
		holder, _ := os.ReadFile(lock.Path()) // it is only for the message
		return nil, fmt.Errorf("locking %s: %w by %s; stop that server or use another directory", dir, ErrLocked,
			cmp.Or(string(holder), "another process"))
	}
	host, _ := os.Hostname() // it is only for the message
	if err := os.WriteFile(lock.Path(), fmt.Appendf(nil, "process %d on host %s", os.Getpid(), host), 0o644); err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", dir, err), lock.Close())
	}
	return lock, nil
}

func isEmpty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) == 0
}

// isTemporary reports whether a file or folder is one that is being written. Nothing of a checkpoint has such a name:
// the names of checkpoints do not begin with a dot.
func isTemporary(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, atomicfile.Extension)
}
