// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"runtime/metrics"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// memory returns the bytes that the process has obtained from the system and not given back.
func memory() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}

// BenchmarkMillionRowsOfFile reads a million rows, copies them to the disk, and makes the batches of an epoch. It
// measures all memory of the process against the goal of 256 MiB.
func BenchmarkMillionRowsOfFile(b *testing.B) {
	const (
		n    = 1_000_000
		size = 512
		most = 256 << 20
	)
	for b.Loop() {
		config := newConfig(b, sums(n), func(f *contract.RunFile) { f.Fixed.Supervised.BatchSize = size })
		s := newSource(b, config)
		var peak uint64
		rows, at := 0, rl.Position{}
		for at.Cursor < n {
			batch, err := s.Batch(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			rows += len(batch.Slots.Members)
			at = batch.After
			s.Advance(at)
			peak = max(peak, memory())
		}
		if rows < n*2/3 {
			b.Errorf("an epoch has %d rows that can be trained on, want at least %d", rows, n*2/3)
		}
		if peak > most {
			b.Errorf("an epoch of %d rows took %d MiB, want at most %d", n, peak>>20, most>>20)
		}
		b.ReportMetric(float64(peak)/most, "memory/goal")
	}
}
