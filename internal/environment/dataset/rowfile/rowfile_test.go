// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rowfile

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// write returns a file of the rows, which is closed when the test ends.
func write(t testing.TB, rows func(yield func(string) bool)) *File {
	t.Helper()
	w, err := Create(t.TempDir(), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	for row := range rows {
		if err := w.Append([]byte(row)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// numbered yields rows of different lengths.
func numbered(n int) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := range n {
			if !yield(row(i)) {
				return
			}
		}
	}
}

func row(i int) string { return fmt.Sprintf("%d:%s", i, strings.Repeat("x", i*31%700)) }

func TestRows(t *testing.T) {
	const n = 20_000
	f := write(t, numbered(n))
	if f.Rows() != n {
		t.Fatalf("Rows = %d, want %d", f.Rows(), n)
	}
	for _, i := range []int{0, 1, 2, n / 2, n - 1, 0, 17} {
		got, err := f.Row(int64(i))
		if err != nil || string(got) != row(i) {
			t.Errorf("Row(%d) = %.20q, %v", i, got, err)
		}
	}
	for _, i := range []int64{-1, n, 1 << 40} {
		if got, err := f.Row(i); err == nil {
			t.Errorf("Row(%d) = %q, want an error", i, got)
		}
	}
}

func TestEmptyRows(t *testing.T) {
	f := write(t, func(yield func(string) bool) { _ = yield("") && yield("a") && yield("") })
	for i, want := range []string{"", "a", ""} {
		if got, err := f.Row(int64(i)); err != nil || string(got) != want {
			t.Errorf("Row(%d) = %q, %v, want %q", i, got, err, want)
		}
	}
}

// counter counts reads and their bytes.
type counter struct {
	reader
	reads, bytes int
}

func (c *counter) ReadAt(p []byte, offset int64) (int, error) {
	n, err := c.reader.ReadAt(p, offset)
	c.reads++
	c.bytes += n
	return n, err
}

// TestReadsOfARow checks that a row, wherever it is, takes two reads: 16 bytes of the index, and the row.
func TestReadsOfARow(t *testing.T) {
	const n = 50_000
	f := write(t, numbered(n))
	rows, index := &counter{reader: f.rows}, &counter{reader: f.index}
	f.rows, f.index = rows, index
	for _, i := range []int{1, n / 3, n - 1} {
		*rows, *index = counter{reader: rows.reader}, counter{reader: index.reader}
		if _, err := f.Row(int64(i)); err != nil {
			t.Fatal(err)
		}
		if rows.reads != 1 || rows.bytes != len(row(i)) || index.reads != 1 || index.bytes != 2*offsetBytes {
			t.Errorf("row %d took %d reads of %d bytes, and %d of the index of %d bytes", i, rows.reads, rows.bytes, index.reads,
				index.bytes)
		}
	}
}

func TestSpace(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(dir, 40)
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	for failed == nil {
		failed = w.Append([]byte("0123456789"))
	}
	if !errors.Is(failed, ErrFull) || w.Rows() != 2 {
		t.Errorf("after %d rows Append = %v, want ErrFull after 2", w.Rows(), failed)
	}
	if err := w.Discard(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("the folder has %v, %v", left, err)
	}
}

func TestCreateWithoutAFolder(t *testing.T) {
	if _, err := Create(t.TempDir()+"/missing", 1); err == nil {
		t.Error("Create succeeds in a folder that does not exist")
	}
}
