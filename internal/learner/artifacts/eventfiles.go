// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/atomicfile"
)

// EventFiles are files of a run that other programs read while they grow, such as event files of TensorBoard. One
// goroutine uses them.
type EventFiles struct {
	store   *Store
	attempt int32
	// name is the name of the file that this process writes. file is the open file, unless the store is at a URL.
	name string
	file *os.File
}

// EventFiles returns the event files, for an attempt that has claimed the run.
func (s *Store) EventFiles(attempt int32) *EventFiles {
	return &EventFiles{store: s, attempt: attempt}
}

// List returns the sorted names of the files in a folder, without the folder's name.
func (e *EventFiles) List(folder string) ([]string, error) {
	names, err := e.store.files.list(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing %s: %w", folder, err)
	}
	slices.Sort(names)
	return names, nil
}

// Read returns the content of a file.
func (e *EventFiles) Read(name string) ([]byte, error) {
	data, err := e.store.files.original(name)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return data, nil
}

// Grow extends the file to content, whose first former bytes the call before has written. If former is 0, the file is
// created or replaced. If a later attempt has replaced the file, this process continues to write the old file. An
// attempt that knows of a later attempt writes nothing.
func (e *EventFiles) Grow(name string, content []byte, former int) error {
	highest, err := e.store.HighestClaim()
	if err != nil || highest > e.attempt {
		return err
	}
	switch {
	case e.store.files.remote != nil:
		err = e.store.files.remote.put(name, content)
	case former > 0 && e.name == name:
		_, err = e.file.WriteAt(content[former:], int64(former))
	default:
		err = e.replace(name, content)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

func (e *EventFiles) replace(name string, content []byte) error {
	path := e.store.files.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := atomicfile.ReplaceDurable(path, fileMode, content)
	if err != nil {
		return err
	}
	if e.file != nil {
		_ = e.file.Close()
	}
	e.name, e.file = name, file
	return nil
}
