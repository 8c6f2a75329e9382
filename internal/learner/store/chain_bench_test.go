// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// BenchmarkRebuild writes the metrics of 200 steps of 128 groups anew from their rows, as a learner does when it resumes.
func BenchmarkRebuild(b *testing.B) {
	s, err := Open(b.TempDir(), "u")
	if err != nil {
		b.Fatal(err)
	}
	const steps, groups = 200, 128
	lineage := func(i int) string {
		sum := sha256.Sum256([]byte(fmt.Sprint(i)))
		return hex.EncodeToString(sum[:])
	}
	for i := 1; i <= steps; i++ {
		row := Row{Step: int64(i), Lineage: lineage(i), Parent: lineage(i - 1), Metrics: map[string]float64{}}
		for m := range 60 {
			row.Metrics[fmt.Sprintf("env/all/metric_number_%d", m)] = float64(m) / 7
		}
		for g := range groups {
			row.Manifest = append(row.Manifest, Slot{Slot: int64(g), Outcome: "Usable", Digest: lineage(g)})
		}
		data, err := json.Marshal(row)
		if err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(s.files.path(rowName(row.Step, row.Lineage)), data, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if err := s.Rebuild(steps, lineage(steps), noParent); err != nil {
			b.Fatal(err)
		}
	}
}
