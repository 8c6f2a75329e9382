// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package archive takes adapters in the format of PEFT out of archives of checkpoints.
package archive

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/tinker-operator/tinker-operator/internal/atomicfile"
	"github.com/tinker-operator/tinker-operator/internal/safetensors"
)

// The files of an adapter in the format of PEFT.
const (
	ConfigFile  = "adapter_config.json"
	TensorsFile = "adapter_model.safetensors"
)

// ErrNoAdapter reports that an archive has no adapter in the format of PEFT.
var ErrNoAdapter = errors.New("the archive has no " + TensorsFile + " beside an " + ConfigFile)

// File is a file that was unpacked.
type File struct {
	Path   string
	SHA256 string
}

// checks accept the files of an adapter by their names.
var checks = map[string]func(io.ReaderAt, int64) error{ConfigFile: checkConfig, TensorsFile: checkTensors}

// Unpack writes the adapter of an archive into a folder. Each file gets its name only after it has been checked, and
// no file is left after an error.
func Unpack(name, folder string) ([]File, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	inside, err := adapterFolder(file)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of the adapter: %w", err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	var unpacked []File
	for files := tar.NewReader(file); len(unpacked) < len(checks); {
		header, err := files.Next()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("unpacking: %w", err), remove(unpacked))
		}
		check := checks[path.Base(header.Name)]
		if check == nil || header.Typeflag != tar.TypeReg || path.Dir(path.Clean(header.Name)) != inside {
			continue
		}
		written, err := Write(filepath.Join(folder, path.Base(header.Name)), files, check)
		if err != nil {
			return nil, errors.Join(err, remove(unpacked))
		}
		unpacked = append(unpacked, written)
	}
	return unpacked, nil
}

// Copy copies the files of an adapter, each given by its own name, into a folder. Each file gets its name only after
// it has been checked, and no file is left after an error.
func Copy(names map[string]string, folder string) ([]File, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of the adapter: %w", err)
	}
	var copied []File
	for _, base := range []string{ConfigFile, TensorsFile} {
		written, err := copyFile(names[base], filepath.Join(folder, base), checks[base])
		if err != nil {
			return nil, errors.Join(err, remove(copied))
		}
		copied = append(copied, written)
	}
	return copied, nil
}

func copyFile(from, to string, check func(io.ReaderAt, int64) error) (File, error) {
	file, err := os.Open(from)
	if err != nil {
		return File{}, err
	}
	defer file.Close()
	return Write(to, file, check)
}

func remove(files []File) error {
	var errs []error
	for _, file := range files {
		errs = append(errs, os.Remove(file.Path))
	}
	return errors.Join(errs...)
}

// Write writes a file, and returns its path and digest. The file gets its name only once it is complete and check,
// which may be nil, has accepted it.
func Write(name string, r io.Reader, check func(io.ReaderAt, int64) error) (File, error) {
	if check == nil {
		check = func(io.ReaderAt, int64) error { return nil }
	}
	hash := sha256.New()
	err := atomicfile.CopyDurable(name, 0o644, io.TeeReader(r, hash), check)
	return File{Path: name, SHA256: hex.EncodeToString(hash.Sum(nil))}, err
}

// adapterFolder returns the folder within an archive that has both files.
func adapterFolder(r io.Reader) (string, error) {
	found := map[string]int{}
	for files := tar.NewReader(r); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return "", ErrNoAdapter
		}
		if err != nil {
			return "", fmt.Errorf("reading the archive: %w: it is not a tar file, or not complete", err)
		}
		base, dir := path.Base(header.Name), path.Dir(path.Clean(header.Name))
		if header.Typeflag != tar.TypeReg || (base != ConfigFile && base != TensorsFile) {
			continue
		}
		bit := 1
		if base == TensorsFile {
			bit = 2
		}
		if found[dir] |= bit; found[dir] == 3 {
			return dir, nil
		}
	}
}

func checkConfig(r io.ReaderAt, size int64) error {
	var config map[string]any
	if err := json.NewDecoder(io.NewSectionReader(r, 0, size)).Decode(&config); err != nil {
		return fmt.Errorf("checking %s: %w", ConfigFile, err)
	}
	return nil
}

// checkTensors reads the header of a file of tensors, and checks that the tensors in it end where the file does.
func checkTensors(r io.ReaderAt, size int64) error {
	if _, _, err := safetensors.ReadHeader(r, size); err != nil {
		return fmt.Errorf("checking %s: %w", TensorsFile, err)
	}
	return nil
}
