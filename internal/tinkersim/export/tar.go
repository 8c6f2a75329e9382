// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
)

// File is a file of an archive.
type File struct {
	Name string
	Data []byte
}

// Tar returns a tar archive of files without times and owners.
func Tar(files ...File) ([]byte, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for _, file := range files {
		header := &tar.Header{Name: file.Name, Mode: 0o644, Size: int64(len(file.Data)), ModTime: time.Unix(0, 0),
			Format: tar.FormatUSTAR}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", file.Name, err)
		}
		if _, err := w.Write(file.Data); err != nil {
			return nil, fmt.Errorf("packing %s: %w", file.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	return buffer.Bytes(), nil
}

// ErrNoFile says that an archive does not have the file.
var ErrNoFile = errors.New("the archive does not have the file")

// Untar returns a file of an archive, or ErrNoFile.
func Untar(archive []byte, name string) ([]byte, error) {
	files := tar.NewReader(bytes.NewReader(archive))
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil, ErrNoFile
		}
		if err != nil {
			return nil, fmt.Errorf("unpacking: %w", err)
		}
		if header.Name == name {
			return io.ReadAll(files)
		}
	}
}
