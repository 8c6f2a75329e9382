// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// TestResumeWithoutSomeRows damages rows while no learner runs. Each damaged row costs its line of metrics.jsonl and
// nothing else, and not even the line if rows.jsonl has the row.
func TestResumeWithoutSomeRows(t *testing.T) {
	t.Parallel()
	const steps = 6
	cases := map[string]struct {
		damaged []int64
		change  func(path string) error
		// summarized keeps rows.jsonl.
		summarized bool
	}{
		"the newest is torn":           {[]int64{4}, func(path string) error { return os.Truncate(path, 60) }, false},
		"one in between is missing":    {[]int64{2}, os.Remove, false},
		"two are empty":                {[]int64{1, 4}, func(path string) error { return os.Truncate(path, 0) }, false},
		"rows.jsonl has those missing": {[]int64{1, 2}, os.Remove, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, func(f *contract.RunFile) { f.Fixed.Algorithm.Steps = steps })
			w.startWorker("w0", behavior{})
			<-w.startLearner(1, w.dieAt("covered.sent", 4)).done
			for _, step := range tc.damaged {
				found, err := filepath.Glob(filepath.Join(w.artifacts, w.file.Run.UID, "rows", fmt.Sprintf("%09d-*.json", step)))
				if err != nil || len(found) != 1 {
					t.Fatalf("step %d has the rows %v (%v), want one", step, found, err)
				}
				if err := tc.change(found[0]); err != nil {
					t.Fatal(err)
				}
			}
			if !tc.summarized {
				if err := os.Remove(filepath.Join(w.artifacts, w.file.Run.UID, "rows.jsonl")); err != nil {
					t.Fatal(err)
				}
			}
			verdict := w.waitFor(w.startLearner(2, nil), contract.CauseCompleted)
			var want []int64
			for step := range int64(steps) {
				if tc.summarized || !slices.Contains(tc.damaged, step+1) {
					want = append(want, step)
				}
			}
			if diff := cmp.Diff(want, w.trainedSteps()); diff != "" {
				t.Errorf("steps in metrics.jsonl (-want +got):\n%s", diff)
			}
			w.result(0)
			w.result(steps)
			if verdict.Progress.Usage.SampledTokens == 0 || verdict.Progress.TrainingSeconds == 0 {
				t.Errorf("usage is %+v in %v s, want the usage that the other rows record",
					verdict.Progress.Usage, verdict.Progress.TrainingSeconds)
			}
		})
	}
}
