// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// BenchmarkRecovery kills the learner's process ten times in one run, and measures the time until the next step is
// committed. The row of the following step proves the commit.
func BenchmarkRecovery(b *testing.B) {
	const kills = 10
	for b.Loop() {
		run := start(b, "recovery", func(spec *v1alpha1.TrainingRunSpec) { spec.Algorithm.Steps = 100000 })
		reached(b, run, 2)
		var took []time.Duration
		for range kills {
			pod := learner(b, run)
			began := time.Now()
			env.signal(b, pod, "KILL")
			// The row is read after the kill, because the run continues until the signal arrives.
			before := newestRow(b, run)
			eventually(b, 3*time.Minute, "the run has continued", func() bool { return newestRow(b, run) > before+1 })
			took = append(took, time.Since(began))
			// The restart budget refills only with steps that a learner has reported before it was killed.
			eventually(b, time.Minute, "the manager has observed it", func() bool {
				env.get(b, run.Namespace, run.Name, run)
				return status.Latest(&run.Status) != nil && status.Latest(&run.Status).Step > int64(before)
			})
		}
		if err := env.Delete(b.Context(), run); err != nil {
			b.Fatal(err)
		}
		slices.Sort(took)
		b.ReportMetric(took[kills/2].Seconds(), "median-s")
		b.ReportMetric(took[kills-1].Seconds(), "max-s")
	}
	b.ReportMetric(0, "ns/op")
}

// newestRow returns the highest step that has a row.
func newestRow(t testing.TB, run *v1alpha1.TrainingRun) int {
	t.Helper()
	rows, err := filepath.Glob(filepath.Join(folder(t, run), "rows", "*"))
	if err != nil {
		t.Fatal(err)
	}
	newest := -1
	for _, row := range rows {
		step, _, _ := strings.Cut(filepath.Base(row), "-")
		if n, err := strconv.Atoi(step); err == nil {
			newest = max(newest, n)
		}
	}
	return newest
}
