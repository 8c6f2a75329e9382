// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package supervised_test

import (
	"context"
	"fmt"
	"runtime/metrics"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/rowfile"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/supervised"
)

// memory returns the bytes that the process has obtained from the system and not given back.
func memory() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}

// BenchmarkMillionRows makes the batches of an epoch of a million rows on disk. It measures all memory of the process
// against the goal of 256 MiB.
func BenchmarkMillionRows(b *testing.B) {
	for b.Loop() {
		benchmarkRows(b)
	}
}

func benchmarkRows(b *testing.B) {
	b.Helper()
	const (
		n    = 1_000_000
		size = 512
		most = 256 << 20
	)
	w, err := rowfile.Create(b.TempDir(), 1<<32)
	if err != nil {
		b.Fatal(err)
	}
	for i := range n {
		row := fmt.Sprintf(
			`{"messages": [{"role": "user", "content": "What is %d + 1?"}, {"role": "assistant", "content": "%d"}]}`, i, i+1)
		if i%10 == 0 {
			row = `{"messages": [{"role": "user", "content": "Nobody replies."}]}`
		}
		if err := w.Append([]byte(row)); err != nil {
			b.Fatal(err)
		}
	}
	file, err := w.Finish()
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	batches, builder := newBatches(b, n, size), byteBuilder(b)
	load := func(_ context.Context, task rl.Task) (supervised.Datum, error) {
		row, err := file.Row(task.Index)
		if err != nil {
			return supervised.Datum{}, err
		}
		return builder.Datum(row)
	}
	var peak uint64
	datums, tombstones := 0, 0
	cursor := int64(0)
	for cursor < n {
		batch, err := batches.Next(b.Context(), cursor, load)
		if err != nil {
			b.Fatal(err)
		}
		cursor, datums, tombstones = batch.Next, datums+len(batch.Datums), tombstones+len(batch.Tombstones)
		peak = max(peak, memory())
	}
	if datums+tombstones != int(cursor) || tombstones < n/10 {
		b.Errorf("%d datums and %d tombstones of %d slots, want at least %d tombstones", datums, tombstones, cursor, n/10)
	}
	if peak > most {
		b.Errorf("an epoch of %d rows took %d MiB, want at most %d", n, peak>>20, most>>20)
	}
	b.ReportMetric(float64(peak)/most, "memory/goal")
}
