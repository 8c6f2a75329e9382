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
	"time"
)

func TestReviewResumeCost(t *testing.T) {
	t.Skip("finding not repaired yet: learner section 3, item 4")
	s, err := Open(t.TempDir(), "u")
	if err != nil {
		t.Fatal(err)
	}
	const steps, groups = 2000, 128
	h := func(i int) string { x := sha256.Sum256([]byte(fmt.Sprint(i))); return hex.EncodeToString(x[:]) }
	for i := 1; i <= steps; i++ {
		r := Row{Step: int64(i), Lineage: h(i), Parent: h(i - 1), Metrics: map[string]float64{}}
		for m := range 60 {
			r.Metrics[fmt.Sprintf("env/all/metric_number_%d", m)] = float64(m) / 7
		}
		for g := range groups {
			r.Manifest = append(r.Manifest, Slot{Slot: int64(g), Outcome: "Usable", Digest: h(g)})
		}
		data, _ := json.Marshal(r)
		_ = os.WriteFile(s.files.path(rowName(r.Step, r.Lineage)), data, 0o644)
	}
	began := time.Now()
	for range s.Chain(steps, h(steps), noParent) {
	}
	t.Logf("one walk of the chain (completeChain): %v", time.Since(began))
	began = time.Now()
	if err := s.Rebuild(steps, h(steps), noParent); err != nil {
		t.Fatal(err)
	}
	t.Logf("Rebuild: %v", time.Since(began))
}
