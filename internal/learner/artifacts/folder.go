// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/tinker-operator/tinker-operator/internal/atomicfile"
)

// fileMode is the mode of all files.
const fileMode = 0o644

// folder has a run's files. Names are relative to it, with slashes.
type folder struct {
	dir string
	// remote is the original if the folder is a copy; nil if the folder is the original.
	remote *remote
}

func (f *folder) path(name string) string { return filepath.Join(f.dir, filepath.FromSlash(name)) }

// claim creates the claim of an attempt unless it exists, and returns the claimant.
func (f *folder) claim(attempt int32, by string) (claimant string, err error) {
	if f.remote != nil {
		return f.remote.claim(attempt, by)
	}
	name := f.path(claimName(attempt))
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		data, err := os.ReadFile(name)
		return string(data), err
	}
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(by)
	if err = errors.Join(err, file.Sync(), file.Close(), atomicfile.SyncDir(filepath.Dir(name))); err != nil {
		// A claim without content, which a full volume can leave, would count as the claim of another process.
		return "", errors.Join(err, os.Remove(name))
	}
	return by, nil
}

func claimName(attempt int32) string { return claimsDir + "/" + strconv.Itoa(int(attempt)) }

// writeJSON replaces a file by the encoded value.
func (f *folder) writeJSON(name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	return f.write(name, append(data, '\n'))
}

// write replaces a file, atomically and durably; the original first, so that the copy has nothing that can be lost.
func (f *folder) write(name string, data []byte) error {
	if f.remote != nil {
		if err := f.remote.put(name, data); err != nil {
			return err
		}
	}
	return atomicfile.WriteDurable(f.path(name), fileMode, data)
}

func (f *folder) readJSON(name string, value any) error {
	data, err := os.ReadFile(f.path(name))
	if errors.Is(err, fs.ErrNotExist) && f.remote != nil && f.remote.isKnown(name) {
		if err := f.remote.copy(name); err != nil {
			return err
		}
		data, err = os.ReadFile(f.path(name))
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, value); err != nil {
		return fmt.Errorf("decoding %s: %w", filepath.Base(name), err)
	}
	return nil
}
