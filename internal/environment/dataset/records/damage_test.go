// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bytes"
	"errors"
	"os"
	"testing"
)

// TestReadParquetOfChangedBytes changes bytes of a file, and checks that unreadable content is reported as a defect of
// the file. The library panics for some of the changes.
func TestReadParquetOfChangedBytes(t *testing.T) {
	whole, err := os.ReadFile("testdata/types.parquet")
	if err != nil {
		t.Fatal(err)
	}
	ignore := func([]byte) error { return nil }
	for i := range 256 {
		for _, flipped := range []byte{0xff, 0x01, 0x80} {
			damaged := bytes.Clone(whole)
			damaged[i] ^= flipped
			err := ReadParquet(bytes.NewReader(damaged), int64(len(damaged)), ignore)
			var row *RowError
			var format *FormatError
			if err != nil && !errors.As(err, &row) && !errors.As(err, &format) {
				t.Errorf("error with byte %d changed is %v, want a *RowError or a *FormatError", i, err)
			}
		}
	}
}
