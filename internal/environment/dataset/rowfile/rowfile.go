// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package rowfile stores rows in a file with an index, so that a row is read by its number with two reads of the disk
// and without memory that grows with the number of rows. A row is any bytes; the data sets store JSON objects.
package rowfile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// offsetBytes is the size of an offset in the index.
const offsetBytes = 8

// ErrFull reports that the rows take more bytes than a file may have.
var ErrFull = errors.New("the rows take more space than the volume has")

// Writer writes a row file. It is used by one goroutine, and ended by Finish or Discard.
type Writer struct {
	rows, index *bufferedFile
	count, size int64
	// space bounds the size of both files together, in bytes.
	space int64
}

// bufferedFile is a file that has no name any more, with a buffer for writes.
type bufferedFile struct {
	*os.File
	buffer *bufio.Writer
}

// Create begins a row file in a folder. The files have no names, so that they vanish with the process that has them
// open. space bounds their size in bytes.
func Create(dir string, space int64) (*Writer, error) {
	rows, err := unnamed(dir)
	if err != nil {
		return nil, err
	}
	index, err := unnamed(dir)
	if err != nil {
		return nil, errors.Join(err, rows.Close())
	}
	return &Writer{rows: rows, index: index, space: space}, nil
}

// unnamed creates a file and removes its name.
func unnamed(dir string) (*bufferedFile, error) {
	file, err := os.CreateTemp(dir, "rows-")
	if err != nil {
		return nil, fmt.Errorf("creating a row file: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("removing the name of a row file: %w", err), file.Close())
	}
	return &bufferedFile{File: file, buffer: bufio.NewWriterSize(file, 1<<16)}, nil
}

// Append adds a row. An error is ErrFull, or an error of the disk.
func (w *Writer) Append(row []byte) error {
	if int64(len(row))+offsetBytes > w.Free() {
		return ErrFull
	}
	if _, err := w.rows.buffer.Write(row); err != nil {
		return fmt.Errorf("writing a row: %w", err)
	}
	w.size += int64(len(row))
	w.count++
	var offset [offsetBytes]byte
	binary.LittleEndian.PutUint64(offset[:], uint64(w.size))
	if _, err := w.index.buffer.Write(offset[:]); err != nil {
		return fmt.Errorf("writing the index of rows: %w", err)
	}
	return nil
}

// Free returns how many bytes the rows may still take.
func (w *Writer) Free() int64 { return w.space - w.size - w.count*offsetBytes }

// Reserve reserves bytes of the space for another file; a negative number returns them.
func (w *Writer) Reserve(bytes int64) { w.space -= bytes }

// Rows returns the number of rows so far.
func (w *Writer) Rows() int64 { return w.count }

// Finish returns the rows for reading.
func (w *Writer) Finish() (*File, error) {
	if err := errors.Join(w.rows.buffer.Flush(), w.index.buffer.Flush()); err != nil {
		return nil, errors.Join(fmt.Errorf("writing rows: %w", err), w.Discard())
	}
	return &File{rows: w.rows.File, index: w.index.File, count: w.count, size: w.size}, nil
}

// Discard deletes the rows and frees their space on the disk.
func (w *Writer) Discard() error { return errors.Join(w.rows.Close(), w.index.Close()) }

// reader is a file or a test's stand-in for one.
type reader interface {
	ReadAt(p []byte, offset int64) (int, error)
	Close() error
}

// File is rows on the disk. It is safe for concurrent use.
type File struct {
	rows, index reader
	count, size int64
}

// Rows returns the number of rows.
func (f *File) Rows() int64 { return f.count }

// Size returns the number of bytes that the files have.
func (f *File) Size() int64 { return f.size + f.count*offsetBytes }

// Row returns the bytes of a row, which the caller may change.
func (f *File) Row(i int64) ([]byte, error) {
	if i < 0 || i >= f.count {
		return nil, fmt.Errorf("reading row %d of %d: it does not exist", i, f.count)
	}
	// An offset is the end of its row, and the beginning of the next.
	var offsets [2 * offsetBytes]byte
	from, at := offsets[:], (i-1)*offsetBytes
	if i == 0 {
		from, at = offsets[offsetBytes:], 0
	}
	if _, err := f.index.ReadAt(from, at); err != nil {
		return nil, fmt.Errorf("reading the index of row %d: %w", i, err)
	}
	begin, end := binary.LittleEndian.Uint64(offsets[:]), binary.LittleEndian.Uint64(offsets[offsetBytes:])
	row := make([]byte, end-begin)
	if len(row) == 0 {
		return row, nil
	}
	if _, err := f.rows.ReadAt(row, int64(begin)); err != nil {
		return nil, fmt.Errorf("reading row %d: %w", i, err)
	}
	return row, nil
}

// Close frees the space of the rows.
func (f *File) Close() error { return errors.Join(f.rows.Close(), f.index.Close()) }
