// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package atomicfile replaces files so that no reader, and no process that starts after a crash, finds a part
// of one.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Extension is the end of the names of unfinished files. A process that is killed may leave such files behind, in the
// folder of the file that it was writing.
const Extension = ".tmp"

// Write replaces the named file with the concatenated parts. Readers see the old file or the new file; after a power
// failure the file may be neither.
func Write(name string, mode fs.FileMode, parts ...[]byte) error {
	file, err := replace(name, mode, write(parts), func(*os.File) error { return nil })
	if err != nil {
		return err
	}
	return file.Close()
}

// WriteDurable does what Write does, and returns once the file and its name are on the disk. Even after a power
// failure, the file is the old file or the new file.
func WriteDurable(name string, mode fs.FileMode, parts ...[]byte) error {
	file, err := ReplaceDurable(name, mode, parts...)
	if err != nil {
		return err
	}
	return file.Close()
}

// CopyDurable is WriteDurable for the bytes of r. It replaces the file only if check accepts the copied bytes.
func CopyDurable(name string, mode fs.FileMode, r io.Reader, check func(io.ReaderAt, int64) error) error {
	fill := func(file *os.File) error {
		size, err := io.Copy(file, r)
		if err != nil {
			return err
		}
		return check(file, size)
	}
	file, err := replace(name, mode, fill, (*os.File).Sync)
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), SyncDir(filepath.Dir(name)))
}

// ReplaceDurable does what WriteDurable does, and returns the new file, positioned at its end.
func ReplaceDurable(name string, mode fs.FileMode, parts ...[]byte) (*os.File, error) {
	return replaceDurable((*os.File).Sync, name, mode, write(parts))
}

// ReplaceDurableBy is ReplaceDurable for the bytes of r.
func ReplaceDurableBy(name string, mode fs.FileMode, r io.Reader) (*os.File, error) {
	fill := func(file *os.File) error {
		_, err := io.Copy(file, r)
		return err
	}
	return replaceDurable((*os.File).Sync, name, mode, fill)
}

// replaceDurable flushes the file before renaming it, and the folder afterwards.
func replaceDurable(sync syncer, name string, mode fs.FileMode, fill func(*os.File) error) (*os.File, error) {
	file, err := replace(name, mode, fill, sync)
	if err != nil {
		return nil, err
	}
	if err := syncDir(sync, filepath.Dir(name)); err != nil {
		return nil, errors.Join(fmt.Errorf("syncing the folder of %s: %w", name, err), file.Close())
	}
	return file, nil
}

// write returns the function that writes the parts to a file.
func write(parts [][]byte) func(*os.File) error {
	return func(file *os.File) error {
		for _, part := range parts {
			if _, err := file.Write(part); err != nil {
				return err
			}
		}
		return nil
	}
}

// syncer flushes an open file, or the entries of an open folder, to the disk.
type syncer func(*os.File) error

func replace(name string, mode fs.FileMode, fill func(*os.File) error, sync syncer) (*os.File, error) {
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*"+Extension)
	if err != nil {
		return nil, err
	}
	err = file.Chmod(mode)
	if err == nil {
		err = fill(file)
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
func SyncDir(name string) error { return syncDir((*os.File).Sync, name) }

func syncDir(sync syncer, name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(sync(dir), dir.Close())
}
