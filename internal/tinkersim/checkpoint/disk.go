// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// Open reads the index of a directory, which it creates if necessary, and removes the unfinished files of
// an earlier process.
func Open(dir string, now func() time.Time) (*Store, error) {
	s := &Store{dir: layout(dir), now: now, runs: map[string]*Run{}, checkpoints: map[tinker.Path]record{}}
	root := filepath.Join(dir, "runs")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, fmt.Errorf("opening checkpoints: %w", err)
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("opening checkpoints: %w", err)
	}
	for _, entry := range entries {
		if err := s.openRun(filepath.Join(root, entry.Name())); err != nil {
			return nil, fmt.Errorf("opening checkpoints of %s: %w", entry.Name(), err)
		}
	}
	return s, nil
}

// openRun reads one run. It removes a folder without run.json: no client ever learnt of such a run.
func (s *Store) openRun(dir string) error {
	var run Run
	err := readJSON(filepath.Join(dir, "run.json"), &run)
	if os.IsNotExist(err) {
		return os.RemoveAll(dir)
	}
	if err != nil {
		return err
	}
	run.LastRequest = run.Created
	s.runs[run.ID] = &run
	if err := os.RemoveAll(filepath.Join(dir, string(Ephemeral))); err != nil {
		return err
	}
	for _, kind := range []tinker.Kind{tinker.KindState, tinker.KindSampler} {
		if err := s.openKind(&run, kind); err != nil {
			return err
		}
	}
	return removeExcept(dir, func(name string) bool { return !strings.HasSuffix(name, temporary) })
}

// openKind reads the checkpoints of one kind.
func (s *Store) openKind(run *Run, kind tinker.Kind) error {
	dir := filepath.Join(s.dir.runDir(run.ID), string(kind))
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".json") {
			continue
		}
		var r record
		if err := readJSON(filepath.Join(dir, entry.Name()), &r); err != nil {
			return err
		}
		used[entry.Name()], used[r.File] = true, true
		s.checkpoints[tinker.Path{Run: run.ID, Kind: kind, Name: r.Name}] = r
		s.schedule(r.Expires)
		if r.Time.After(run.LastRequest) {
			run.LastRequest = r.Time
		}
	}
	return removeExcept(dir, func(name string) bool { return used[name] })
}

// removeExcept removes the files of a folder except those for which keep returns true.
func removeExcept(dir string, keep func(name string) bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() || keep(entry.Name()) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// temporary is the suffix of files that are being written. No file of a checkpoint has it.
const temporary = ".tmp"

// writeFile writes a file atomically, so that it is complete or missing even after a power failure.
func writeFile(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(name), "*"+temporary)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // fails after the rename
	if _, err := file.Write(data); err != nil {
		file.Close()
		return err
	}
	if err := file.Sync(); err != nil {
		file.Close()
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}

func writeJSON(name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return writeFile(name, data)
}

func readJSON(name string, value any) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, value); err != nil {
		return fmt.Errorf("decoding %s: %w", filepath.Base(name), err)
	}
	return nil
}
