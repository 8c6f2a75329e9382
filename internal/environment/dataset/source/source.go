// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/records"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/rowfile"
)

// source writes the rows of one source.
type source struct {
	// format makes the prompts that every row must have; nil if rows need no prompt.
	format *dataset.Format
	rows   *rowfile.Writer
	// dir is the folder for temporary files.
	dir string
	// space is the number of bytes that the pod has for data, for messages.
	space int64
}

// add checks and appends the rows of a file, and returns the digest of the file.
func (s *source) add(name string, file io.Reader) (digest string, err error) {
	sum := sha256.New()
	content := io.TeeReader(file, sum)
	if records.FormatOf(name) == records.Parquet {
		err = s.addParquet(name, content)
	} else {
		err = records.ReadJSONL(name, content, s.append)
		if err == nil {
			// The digest covers bytes behind the compressed stream as well.
			_, err = io.Copy(io.Discard, content)
		}
	}
	if err != nil {
		return "", s.rowError(name, err)
	}
	return digestOf(sum), nil
}

func digestOf(sum hash.Hash) string { return hex.EncodeToString(sum.Sum(nil)) }

// addParquet stores the file first: Parquet is read from its end.
func (s *source) addParquet(name string, content io.Reader) error {
	stored, err := os.CreateTemp(s.dir, "parquet-")
	if err != nil {
		return fmt.Errorf("storing %s: %w", name, err)
	}
	defer stored.Close()
	if err := os.Remove(stored.Name()); err != nil {
		return fmt.Errorf("storing %s: %w", name, err)
	}
	limit := s.rows.Free()
	size, err := io.Copy(stored, io.LimitReader(content, limit+1))
	if err != nil {
		return fmt.Errorf("storing %s: %w", name, err)
	}
	if size > limit {
		return rowfile.ErrFull
	}
	s.rows.Reserve(size)
	defer s.rows.Reserve(-size)
	return records.ReadParquet(stored, size, s.append)
}

// append checks a row and writes it.
func (s *source) append(object []byte) error {
	columns, err := decode(object)
	if err != nil {
		return err
	}
	if s.format != nil {
		if _, err := s.format.Row(columns); err != nil {
			return err
		}
	}
	return s.rows.Append(object)
}

// rowError adds the file and the row to an error. The result is an *Error if the data or the definition has to be
// repaired.
func (s *source) rowError(name string, err error) error {
	var column *dataset.ColumnError
	var row *records.RowError
	var format *records.FormatError
	switch {
	case errors.Is(err, rowfile.ErrFull):
		return errorf("dataset: the rows up to %s take more than the %d GiB of disk that a pod has for data: split the "+
			"data, and use less of it", name, s.space>>30)
	case errors.As(err, &column) && errors.As(err, &row):
		return errorf("%s: row %d of %s %s: %s", column.Field, row.Row, name, column.Problem, column.Repair)
	case errors.As(err, &row):
		return errorf("dataset: row %d of %s cannot be read: %w", row.Row, name, row.Err)
	case errors.As(err, &format):
		return errorf("dataset: %s cannot be read: %w: correct the file, or its name's ending", name, format)
	default:
		return fmt.Errorf("reading %s: %w", name, err)
	}
}

// fileRows are rows on the disk.
type fileRows struct{ file *rowfile.File }

// Count implements dataset.Rows.
func (r fileRows) Count() int64 { return r.file.Rows() }

// Columns implements dataset.Rows.
func (r fileRows) Columns(_ context.Context, index int64) (map[string]any, error) {
	object, err := r.file.Row(index)
	if err != nil {
		return nil, err
	}
	return decode(object)
}

// Object returns the JSON object of a row as it was read.
func (r fileRows) Object(_ context.Context, index int64) ([]byte, error) { return r.file.Row(index) }

// decode decodes the columns of a row as dataset.Row has them.
func decode(object []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(object))
	decoder.UseNumber()
	var columns map[string]any
	if err := decoder.Decode(&columns); err != nil {
		return nil, fmt.Errorf("decoding a row: %w", err)
	}
	return columns, nil
}
