// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package records reads the rows of JSONL and Parquet files one after the other, as JSON objects. Its memory does not
// grow with the file: it holds a line of JSONL, or a page of each column of Parquet.
package records

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
)

// maxLine bounds a line of JSONL.
const maxLine = 16 << 20

// Format is the format of a file.
type Format int

// The formats.
const (
	Unknown Format = iota
	JSONL
	Parquet
)

// FormatOf returns the format of a file by its name. JSONL may be compressed (.gz, .zst).
func FormatOf(name string) Format {
	name = strings.ToLower(name)
	if strings.HasSuffix(name, ".parquet") {
		return Parquet
	}
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
	for _, suffix := range []string{".jsonl", ".ndjson", ".json"} {
		if strings.HasSuffix(name, suffix) {
			return JSONL
		}
	}
	return Unknown
}

// RowError reports that a row of a file cannot be used.
type RowError struct {
	// Row is the number of the row, from 1; for JSONL, the number of the line.
	Row int64
	Err error
}

// Error implements error.
func (e *RowError) Error() string { return fmt.Sprintf("row %d: %v", e.Row, e.Err) }

// Unwrap returns the cause.
func (e *RowError) Unwrap() error { return e.Err }

// FormatError reports that a file is not in the format that its name stands for.
type FormatError struct{ Err error }

// Error implements error.
func (e *FormatError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *FormatError) Unwrap() error { return e.Err }

// ReadJSONL calls each with the JSON object of every line, which each must not keep. Empty lines are left out. name
// decides whether the file is compressed. An error of each is returned as a *RowError, and so is a line that is not a
// JSON object.
func ReadJSONL(name string, file io.Reader, each func(object []byte) error) error {
	plain, done, err := decompressed(name, file)
	if err != nil {
		return err
	}
	defer done()
	lines := bufio.NewScanner(plain)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	number := int64(0)
	for lines.Scan() {
		number++
		line := lines.Bytes()
		if number == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		err := checkLine(line)
		if err == nil {
			err = each(line)
		}
		if err != nil {
			return &RowError{Row: number, Err: err}
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return &RowError{Row: number + 1, Err: fmt.Errorf("the line has over %d MiB", maxLine>>20)}
	} else if err != nil {
		return fmt.Errorf("reading lines: %w", err)
	}
	return nil
}

// checkLine returns an error for a line that is not a JSON object.
func checkLine(line []byte) error {
	if !utf8.Valid(line) {
		return errors.New("the line is not valid UTF-8")
	}
	if json.Valid(line) {
		if line[0] == '{' {
			return nil
		}
		if line[0] == '[' {
			return errors.New("the line is a JSON array, not an object: write one object a line, without brackets around them")
		}
		return errors.New("the line is not a JSON object")
	}
	var object map[string]any
	err := json.Unmarshal(line, &object)
	return fmt.Errorf("the line is not a JSON object (%w): write each object on one line", err)
}

// decompressed returns a reader of the decompressed content of a file.
func decompressed(name string, file io.Reader) (plain io.Reader, done func(), err error) {
	switch name = strings.ToLower(name); {
	case strings.HasSuffix(name, ".gz"):
		unzip, err := gzip.NewReader(file)
		if errors.Is(err, gzip.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			err = &FormatError{Err: fmt.Errorf("the file is not compressed with gzip: %w", err)}
		}
		return unzip, func() {}, err
	case strings.HasSuffix(name, ".zst"):
		decoder, err := zstd.NewReader(file, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
		if err != nil {
			return nil, nil, fmt.Errorf("decompressing: %w", err)
		}
		return decoder, decoder.Close, nil
	default:
		return file, func() {}, nil
	}
}
