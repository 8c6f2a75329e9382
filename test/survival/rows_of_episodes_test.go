// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// TestRowsOfEpisodes trains on the unchanged file that an evaluation has written: on all of its episodes, and on the
// best episode of each task.
func TestRowsOfEpisodes(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(f *contract.RunFile) {
		f.RecordedGroups = math.MaxInt32
		f.Evaluation.Environments[0].GroupSize = 4
	})
	kill := w.startRolloutWorker("w0")
	w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
	kill()
	files, err := filepath.Glob(filepath.Join(w.artifacts, w.file.Run.UID, "episodes", "evaluation-*.jsonl.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are the files %q of evaluations: %v", files, err)
	}
	data, err := os.ReadFile(files[len(files)-1])
	if err != nil {
		t.Fatal(err)
	}
	w.writeRows("")
	if err := os.WriteFile(filepath.Join(w.data, "configmap", "rows", "teacher.jsonl.gz"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	train := func(change func(*contract.Supervised)) map[string]float64 {
		w.beginNext("", func(f *contract.RunFile) {
			withRows(f)
			f.Fixed.InitFrom, f.Evaluation, f.Checkpoints.KeepBestMetric = nil, nil, ""
			f.Fixed.Supervised.Dataset.Splits = []settings.DataSplit{{Name: "train", Source: "teacher.jsonl.gz"}}
			f.Fixed.Supervised.BatchSize = 4
			change(f.Fixed.Supervised)
		})
		w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
		total := map[string]float64{}
		for _, line := range w.metrics() {
			for name, value := range line {
				total[name] += value
			}
		}
		return total
	}
	all := train(func(*contract.Supervised) {})
	if all["batch/rows"] != 16 || all["batch/rows_left_out"] != 0 {
		t.Errorf("%v rows are trained on and %v left out, want 16 and none", all["batch/rows"], all["batch/rows_left_out"])
	}
	best := train(func(s *contract.Supervised) { s.BestOfTask = true })
	filtered := best["batch/rows_filtered"]
	if best["batch/rows"] != 16 || filtered == 0 || filtered != best["batch/rows_left_out"] {
		t.Errorf("of the best, %v rows are trained on, %v filtered and %v left out, want 16 and all others filtered",
			best["batch/rows"], filtered, best["batch/rows_left_out"])
	}
}
