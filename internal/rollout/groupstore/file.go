// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package groupstore

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/tinker-operator/tinker-operator/internal/atomicfile"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// A file is the magic with the version, the SHA-256 of the message, and the message. Files need not survive the node,
// since the folder does not.
const (
	magic  = "tinker-operator group "
	ending = ".group"
)

// header is the beginning of a file of a run.
func header(version int) []byte { return fmt.Appendf(nil, "%s%d\n", magic, version) }

// errDamaged reports that a file is not as it was written.
var errDamaged = errors.New("the file is damaged")

// path is the path of a group's file. A key cannot be the name of a file, so the name has the key's digest.
func path(dir string, key rl.Key) string {
	digest := sha256.Sum256(fmt.Appendf(nil, "%d %d %s %s", key.Kind, key.Slot, key.Lineage, key.Evaluation))
	return filepath.Join(dir, fmt.Sprintf("%s-%d-%s%s", key.Kind, key.Slot, hex.EncodeToString(digest[:8]), ending))
}

func write(config Config, key rl.Key, encoded []byte) error {
	sum := sha256.Sum256(encoded)
	if err := atomicfile.Write(path(config.Dir, key), 0o600, header(config.Version), sum[:], encoded); err != nil {
		return fmt.Errorf("spilling group of slot %d: %w", key.Slot, err)
	}
	return nil
}

func read(name string, version int) ([]byte, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	first, rest, ok := bytes.Cut(data, []byte("\n"))
	if !ok || !bytes.HasPrefix(first, []byte(magic)) {
		return nil, errDamaged
	}
	found, err := strconv.Atoi(string(first[len(magic):]))
	if err != nil {
		return nil, errDamaged
	}
	if err := contract.CheckRunVersion("the stored group", found, version); err != nil {
		return nil, err
	}
	if len(rest) < sha256.Size {
		return nil, errDamaged
	}
	if sum := sha256.Sum256(rest[sha256.Size:]); !bytes.Equal(sum[:], rest[:sha256.Size]) {
		return nil, errDamaged
	}
	return rest[sha256.Size:], nil
}

func remove(dir string, key rl.Key) error {
	if err := os.Remove(path(dir, key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing spilled group of slot %d: %w", key.Slot, err)
	}
	return nil
}

// load reads the files of a folder, which is made if it does not exist. Files of this package that cannot be used are
// removed, except for files of another version.
func load(config Config) ([]*entry, error) {
	dir, logger := config.Dir, config.Logger
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making spill folder: %w", err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading spill folder: %w", err)
	}
	var found []*entry
	for _, file := range files {
		if extension := filepath.Ext(file.Name()); extension != ending && extension != atomicfile.Extension {
			continue
		}
		name := filepath.Join(dir, file.Name())
		e, err := loadFile(dir, name, config.Version)
		if err == nil {
			found = append(found, e)
			continue
		}
		if contract.IsVersionError(err) {
			logger.Warn("leaving a spilled group to a worker of another build", "file", file.Name(), "err", err)
			continue
		}
		logger.Warn("dropping a spilled group that cannot be used", "file", file.Name(), "err", err)
		if err := os.Remove(name); err != nil {
			return nil, fmt.Errorf("removing damaged spill file: %w", err)
		}
	}
	return found, nil
}

func loadFile(dir, name string, version int) (*entry, error) {
	if filepath.Ext(name) != ending {
		return nil, errors.New("the file was never finished")
	}
	encoded, err := read(name, version)
	if err != nil {
		return nil, err
	}
	group, err := exchange.DecodeGroup(encoded)
	if err != nil {
		return nil, err
	}
	if path(dir, group.Key) != name {
		return nil, errDamaged
	}
	return newEntry(exchange.EncodedGroup{Key: group.Key, Outcome: group.Outcome, Digest: group.Digest(),
		Message: encoded}), nil
}
