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
	return write(name, mode, parts, func(*os.File) error { return nil })
}

// WriteDurable does what Write does, and returns once the file and its name are on the disk: after a power
// failure, too, the file is the old one or the new one.
func WriteDurable(name string, mode fs.FileMode, parts ...[]byte) error {
	if err := write(name, mode, parts, (*os.File).Sync); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(name)); err != nil {
		return fmt.Errorf("syncing the folder of %s: %w", name, err)
	}
	return nil
}

func write(name string, mode fs.FileMode, parts [][]byte, sync func(*os.File) error) error {
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*"+Extension)
	if err != nil {
		return err
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
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", name, err), os.Remove(file.Name()))
	}
	return nil
}

func syncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
