// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// BenchmarkResume reads the rows as a learner does when it resumes after 10,000 steps of 128 groups: it walks the
// chain and rebuilds metrics.jsonl. For comparison, FilesOfRows does the same for 1,000 steps without rows.jsonl.
func BenchmarkResume(b *testing.B) {
	s, err := OpenStore(b.TempDir(), "u")
	if err != nil {
		b.Fatal(err)
	}
	const steps, groups = 10000, 128
	version := func(i int) rl.Version {
		return rl.Version{Step: int64(i), Lineage: rl.Lineage(sha256.Sum256([]byte(fmt.Sprint(i))))}
	}
	row := Row{Metrics: map[string]float64{}}
	for m := range 60 {
		row.Metrics[fmt.Sprintf("env/all/metric_number_%d", m)] = float64(m) / 7
	}
	for g := range groups {
		row.Manifest = append(row.Manifest, Slot{Slot: int64(g), Outcome: "Usable", Digest: version(g).Lineage.String()})
	}
	for i := 1; i <= steps; i++ {
		row.Version, row.Parent = version(i), version(i-1).Lineage
		data, err := json.Marshal(row)
		if err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(s.files.path(rowName(row.Version)), data, fileMode); err != nil {
			b.Fatal(err)
		}
	}
	resume := func(b *testing.B, steps int) {
		count := 0
		for v := range s.Chain(version(steps), noParent) {
			if v.Row != nil {
				count++
			}
		}
		if err := s.Rebuild(version(steps), noParent); err != nil || count != steps {
			b.Fatalf("%d of %d rows are read: %v", count, steps, err)
		}
	}
	b.Run("FilesOfRows", func(b *testing.B) {
		for b.Loop() {
			_ = os.Remove(s.files.path(rowsName))
			resume(b, steps/10)
		}
	})
	resume(b, steps)
	b.Run("RowsJSONL", func(b *testing.B) {
		for b.Loop() {
			resume(b, steps)
		}
	})
}
