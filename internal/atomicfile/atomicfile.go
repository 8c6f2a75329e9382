// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package atomicfile replaces files so that no reader, and no process that starts after a crash, finds a part
// of one.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Extension ends the names of files that are not finished. A process that was killed may leave some behind,
// in the folder of the file that they were to become.
const Extension = ".tmp"

// Write replaces the named file with the concatenated parts. Readers see the old file or the new one; after
// a power failure the file may be neither.
func Write(name string, mode fs.FileMode, parts ...[]byte) error {
	file, err := replace(name, mode, parts, func(*os.File) error { return nil })
	if err != nil {
		return err
	}
	return file.Close()
}

// WriteDurable does what Write does, and returns once the file and its name are on the disk: after a power
// failure, too, the file is the old one or the new one.
func WriteDurable(name string, mode fs.FileMode, parts ...[]byte) error {
	file, err := ReplaceDurable(name, mode, parts...)
	if err != nil {
		return err
	}
	return file.Close()
}

// ReplaceDurable does what WriteDurable does, and returns the new file, positioned at its end.
func ReplaceDurable(name string, mode fs.FileMode, parts ...[]byte) (*os.File, error) {
	file, err := replace(name, mode, parts, (*os.File).Sync)
	if err != nil {
		return nil, err
	}
	if err := SyncDir(filepath.Dir(name)); err != nil {
		return nil, errors.Join(fmt.Errorf("syncing the folder of %s: %w", name, err), file.Close())
	}
	return file, nil
}

func replace(name string, mode fs.FileMode, parts [][]byte, sync func(*os.File) error) (*os.File, error) {
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*"+Extension)
	if err != nil {
		return nil, err
	}
	err = file.Chmod(mode)
	for _, part := range parts {
		if err == nil {
			_, err = file.Write(part)
		}
	}
	if err == nil {
		err = sync(file)
	}
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("writing %s: %w", name, err), file.Close(), os.Remove(file.Name()))
	}
	return file, nil
}

// SyncDir returns once the names of the files in a folder are on the disk.
func SyncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
