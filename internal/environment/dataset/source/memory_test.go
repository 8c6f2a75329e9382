// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// The race detector makes 500,000 rows ten times slower.
//go:build !race

package source

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime/metrics"
	"testing"
	"time"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// maxMemory bounds the memory for reading a data set.
const maxMemory = 64 << 20

// heap returns the size of the objects on the heap in bytes, including dead objects that were not collected yet.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// TestMemoryOfManyRows reads 500,000 rows of Parquet in one row group, and watches the heap as rows are checked: memory
// must not grow with the rows. The file is written to disk, so that it does not count.
func TestMemoryOfManyRows(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes and reads 500,000 rows")
	}
	const n = 500_000
	root := t.TempDir()
	name := filepath.Join(root, "claim/c/rows.parquet")
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, parquetFile(t, 0, n), 0o600); err != nil {
		t.Fatal(err)
	}
	l := New(Config{Root: root, Dir: t.TempDir(), Space: 1 << 32})
	before := heap()
	var peak uint64
	done, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for {
			peak = max(peak, heap())
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	d := open(t, l, contract.Dataset{Dataset: settings.Dataset{
		JSONL: &settings.JSONL{ClaimName: "c"}, Prompt: "$(nums) make $(target)",
		Splits: []settings.DataSplit{{Name: "train", Source: "rows.parquet", ShuffleSeed: new(int64(1))}},
	}})
	splits, err := d.Splits(t.Context())
	close(done)
	<-watched
	if err != nil || splits[0].Tasks != n {
		t.Fatalf("Splits = %v, %v", splits, err)
	}
	if grown := int64(peak) - int64(before); grown > maxMemory {
		t.Errorf("reading %d rows took %d MiB of heap, want at most %d", n, grown>>20, maxMemory>>20)
	} else {
		t.Logf("the heap grew by %d MiB at most", grown>>20)
	}
	if row, err := d.Row(t.Context(), "train", n-1); err != nil || !bytes.Contains([]byte(row.Prompt), []byte(" make ")) {
		t.Errorf("Row = %+v, %v", row, err)
	}
}

// BenchmarkRow measures the time to read a row by its index, as a ratio to the goal of 5 ms.
func BenchmarkRow(b *testing.B) {
	const goal = 5 * time.Millisecond
	root := b.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "claim/c"), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "claim/c/rows.parquet"), parquetFile(b, 0, 100_000), 0o600); err != nil {
		b.Fatal(err)
	}
	l := New(Config{Root: root, Dir: b.TempDir(), Space: 1 << 32})
	d, err := l.Open(b.Context(), contract.Dataset{Dataset: settings.Dataset{JSONL: &settings.JSONL{ClaimName: "c"},
		Prompt: "$(nums)",
		Splits: []settings.DataSplit{{Name: "train", Source: "rows.parquet", ShuffleSeed: new(int64(1))}}}})
	if err == nil {
		_, err = d.Splits(b.Context())
	}
	if err != nil {
		b.Fatal(err)
	}
	i := int64(0)
	for b.Loop() {
		if _, err := d.Row(b.Context(), "train", i%100_000); err != nil {
			b.Fatal(err)
		}
		i += 7919
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(goal), "row/goal")
}
