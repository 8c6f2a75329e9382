// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/atomicfile"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// Open reads the index of a directory, which it creates if necessary, and removes the unfinished files of an earlier
// process. It refuses a directory that is neither empty nor tinkersim's, and returns ErrLocked for one that another
// store has open. It skips entries that are damaged or not checkpoints, and logs a warning. The caller closes the
// store.
func Open(dir string, now func() time.Time, log *slog.Logger) (*Store, error) {
	s, err := open(dir, now, log)
	if err != nil {
		return nil, fmt.Errorf("opening checkpoints: %w", err)
	}
	return s, nil
}

func open(dir string, now func() time.Time, log *slog.Logger) (*Store, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	mark, err := inspect(dir)
	if err != nil {
		return nil, err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{
		lock:        lock,
		dir:         layout{runs: filepath.Join(dir, mark.Runs)},
		now:         now,
		runs:        map[string]*Run{},
		checkpoints: map[tinker.Path]Checkpoint{},
	}
	if err := (loader{store: s, log: log}).load(dir, mark); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// loader reads the index of a store.
type loader struct {
	store *Store
	log   *slog.Logger
}

// load marks the directory if necessary and reads the index.
func (l loader) load(dir string, mark marker) error {
	if _, err := os.Stat(filepath.Join(dir, markerFile)); os.IsNotExist(err) {
		if err := writeJSON(filepath.Join(dir, markerFile), mark); err != nil {
			return err
		}
	}
	if err := l.openRuns(); err != nil {
		return err
	}
	return removeTemporary(dir)
}

// openRuns reads all runs. It ignores entries that are not runs.
func (l loader) openRuns() error {
	if err := os.MkdirAll(l.store.dir.runs, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(l.store.dir.runs)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		dir := filepath.Join(l.store.dir.runs, entry.Name())
		if isTemporary(entry.Name()) {
			continue
		}
		run, err := readRun(dir)
		if err != nil {
			l.log.Warn("skipping an entry that is not a readable run", "path", dir, "err", err)
			continue
		}
		if err := l.openRun(dir, run); err != nil {
			return fmt.Errorf("reading run %s: %w", run.ID, err)
		}
	}
	return removeTemporary(l.store.dir.runs)
}

// openRun reads the checkpoints of a run.
func (l loader) openRun(dir string, run Run) error {
	run.LastRequest = run.Created
	l.store.runs[run.ID] = &run
	if err := os.RemoveAll(filepath.Join(dir, string(Ephemeral))); err != nil {
		return err
	}
	for _, kind := range []tinker.Kind{tinker.KindState, tinker.KindSampler, tinker.KindExternal} {
		if err := l.openKind(&run, kind); err != nil {
			return err
		}
	}
	return removeUnfinished(dir, nil)
}

// openKind reads the checkpoints of one kind.
func (l loader) openKind(run *Run, kind tinker.Kind) error {
	dir := filepath.Join(l.store.dir.runDir(run.ID), string(kind))
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
		c, err := readRecord(filepath.Join(dir, entry.Name()))
		if err != nil {
			l.log.Warn("skipping a damaged checkpoint", "run", run.ID, "path", filepath.Join(dir, entry.Name()), "err", err)
			used[strings.TrimSuffix(entry.Name(), ".json")] = true // its data stay: somebody may repair the record
			continue
		}
		used[c.File] = true
		c.Run, c.Kind = run.ID, kind
		l.store.checkpoints[c.Path] = c
		l.store.schedule(c.Expires)
		if c.Time.After(run.LastRequest) {
			run.LastRequest = c.Time
		}
	}
	return removeUnfinished(dir, used)
}

// readRecord reads the description of a checkpoint, whose data must exist. It sets only the name of the checkpoint's
// path.
func readRecord(file string) (Checkpoint, error) {
	var r record
	if err := readJSON(file, &r); err != nil {
		return Checkpoint{}, err
	}
	data := dataName.FindStringSubmatch(r.File)
	if r.Name+".json" != filepath.Base(file) || data == nil || data[1] != r.Name {
		return Checkpoint{}, fmt.Errorf("reading %s: it describes another checkpoint", filepath.Base(file))
	}
	_, err := os.Stat(filepath.Join(filepath.Dir(file), r.File))
	r.Path.Name = r.Name
	return r.Checkpoint, err
}

// dataName matches the names of data files; the first group is the name of the checkpoint.
var dataName = regexp.MustCompile(`^(.+)\.[0-9a-f]{16}\.bin$`)

// legacyTemporary matches the temporary names of earlier versions.
var legacyTemporary = regexp.MustCompile(`^[0-9]+\.tmp$`)

// removeUnfinished removes the files that an interrupted save left in a folder: temporary files, and data files
// that no record names. The map has the data files in use, and the checkpoints whose records are damaged.
func removeUnfinished(dir string, used map[string]bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		unfinished := legacyTemporary.MatchString(name)
		if data := dataName.FindStringSubmatch(name); data != nil {
			unfinished = !used[name] && !used[data[1]]
		}
		if entry.IsDir() || !unfinished {
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return removeTemporary(dir)
}

// removeTemporary removes the temporary files and folders in a folder.
func removeTemporary(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !isTemporary(entry.Name()) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// writeRun writes the folder of a run. It is complete when it gets its name.
func (l layout) writeRun(run Run) error {
	dir, err := os.MkdirTemp(l.runs, ".run-*"+atomicfile.Extension)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // there is nothing to remove after the rename
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	if err := writeJSON(filepath.Join(dir, runFile), run); err != nil {
		return err
	}
	if err := os.Rename(dir, l.runDir(run.ID)); err != nil {
		return err
	}
	return atomicfile.SyncDir(l.runs)
}

// makeDir creates a folder whose name survives a power failure. Its parent must exist.
func makeDir(dir string) error {
	err := os.Mkdir(dir, 0o755)
	if os.IsExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(dir))
}

// writeFile writes a file atomically, so that it is complete or missing even after a power failure.
func writeFile(name string, data []byte) error {
	if err := makeDir(filepath.Dir(name)); err != nil {
		return err
	}
	return atomicfile.WriteDurable(name, 0o600, data)
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
