// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package store keeps the files of a run: the claims of its attempts, a row for each step and evaluation, and
// metrics.jsonl. It does not depend on Tinker or on training.
//
// Layout below the folder of the run's uid:
//
//	attempts/<n>                              claim of attempt n
//	rows/<step>-<lineage>.json                row of the step that led to that version
//	evaluations/<step>-<lineage>-<plan>.json  result of one evaluation
//	session                                   rollout session that samples were asked for in
//	workers.json                              workers that are connected to the newest learner
//	metrics.jsonl                             each step once, from the final state back along the parents
//
// A row is written before its state is saved and may belong to a state that never came to be. Only the
// chain of parents says which rows count. Files appear whole or not at all, and survive a power failure
// once the call that wrote them has returned.
package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// ErrClaimed says that another process has claimed the attempt.
var ErrClaimed = errors.New("the attempt is claimed by another process")

const (
	claimsDir      = "attempts"
	rowsDir        = "rows"
	evaluationsDir = "evaluations"
	sessionFile    = "session"
	workersFile    = "workers.json"
)

// Store is the folder of one run. It is safe for concurrent use by the parts of one learner, and its
// claims by several learners.
type Store struct {
	dir     string
	metrics metricsFile
}

// Open makes the folders of the run below dir as needed.
func Open(dir, runUID string) (*Store, error) {
	s := &Store{dir: filepath.Join(dir, runUID)}
	for _, sub := range []string{claimsDir, rowsDir, evaluationsDir} {
		if err := os.MkdirAll(filepath.Join(s.dir, sub), 0o755); err != nil {
			return nil, fmt.Errorf("making artifact folders: %w", err)
		}
	}
	s.metrics.path = filepath.Join(s.dir, "metrics.jsonl")
	return s, nil
}

// Claim marks the attempt as begun by the process that by identifies. The same process may claim again, should
// the answer to its first call have been lost. It fails with ErrClaimed when another process was first.
func (s *Store) Claim(attempt int32, by string) error {
	name := s.claimPath(attempt)
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return s.compareClaim(name, by)
	}
	if err != nil {
		return fmt.Errorf("claiming attempt %d: %w", attempt, err)
	}
	_, err = file.WriteString(by)
	err = errors.Join(err, file.Sync(), file.Close(), syncDir(filepath.Dir(name)))
	if err != nil {
		return fmt.Errorf("claiming attempt %d: %w", attempt, err)
	}
	return nil
}

func (s *Store) claimPath(attempt int32) string {
	return filepath.Join(s.dir, claimsDir, strconv.Itoa(int(attempt)))
}

func (s *Store) compareClaim(name, by string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("reading claim: %w", err)
	}
	if string(data) != by {
		return fmt.Errorf("claiming attempt %s: %w", filepath.Base(name), ErrClaimed)
	}
	return nil
}

// HighestClaim is the highest attempt that was ever claimed, 0 for none.
func (s *Store) HighestClaim() (int32, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, claimsDir))
	if err != nil {
		return 0, fmt.Errorf("listing claims: %w", err)
	}
	var highest int32
	for _, entry := range entries {
		if n, err := strconv.ParseInt(entry.Name(), 10, 32); err == nil {
			highest = max(highest, int32(n))
		}
	}
	return highest, nil
}

// SetWorkers records the workers for the attempt after this one.
func (s *Store) SetWorkers(names []string) error {
	return writeJSON(filepath.Join(s.dir, workersFile), names)
}

// Workers returns the workers that were recorded last; none when none were.
func (s *Store) Workers() []string {
	var names []string
	if readJSON(filepath.Join(s.dir, workersFile), &names) != nil {
		return nil
	}
	return names
}

// SetSession records the rollout session for the attempt after this one.
func (s *Store) SetSession(session string) error {
	return replaceFile(filepath.Join(s.dir, sessionFile), []byte(session))
}

// Session returns the rollout session that was recorded last; empty for none.
func (s *Store) Session() string {
	data, err := os.ReadFile(filepath.Join(s.dir, sessionFile))
	if err != nil {
		return ""
	}
	return string(data)
}

// writeJSON replaces a file by the encoded value, atomically and durably.
func writeJSON(path string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	return replaceFile(path, append(data, '\n'))
}

// replaceFile writes beside the file and renames, so that neither a reader nor a crash finds half of it.
func replaceFile(path string, data []byte) error {
	file, err := swapFile(path, data)
	if err != nil {
		return err
	}
	return file.Close()
}

// swapFile is replaceFile, and returns the new file, positioned at its end.
func swapFile(path string, data []byte) (*os.File, error) {
	file, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return nil, err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Chmod(0o644), file.Sync())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		_ = file.Close()
		_ = os.Remove(file.Name())
		return nil, err
	}
	return file, nil
}

func syncDir(dir string) error {
	handle, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(handle.Sync(), handle.Close())
}

func readJSON(path string, value any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, value); err != nil {
		return fmt.Errorf("decoding %s: %w", filepath.Base(path), err)
	}
	return nil
}
