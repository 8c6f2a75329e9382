// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/learner/store"
)

// checkMetrics demands each step exactly once in metrics.jsonl, in order, with what a step has.
func (w *fixture) checkMetrics() {
	w.t.Helper()
	steps := w.trainedSteps()
	if want := w.file.Fixed.Algorithm.Steps; int64(len(steps)) != want {
		w.t.Fatalf("metrics.jsonl has the steps %v, want 0 to %d", steps, want-1)
	}
	for i, step := range steps {
		if step != int64(i) {
			w.t.Fatalf("metrics.jsonl has the steps %v, want each once and in order", steps)
		}
	}
}

// trainedSteps lists the steps of metrics.jsonl whose lines have metrics of training, and not of an evaluation alone.
func (w *fixture) trainedSteps() []int64 {
	w.t.Helper()
	var steps []int64
	for _, line := range w.metrics() {
		if _, trained := line["progress/batch"]; trained {
			steps = append(steps, int64(line["step"]))
		}
	}
	return steps
}

// metrics reads the lines of metrics.jsonl.
func (w *fixture) metrics() []map[string]float64 {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.artifacts, w.file.Run.UID, "metrics.jsonl"))
	if err != nil {
		w.t.Fatal(err)
	}
	var lines []map[string]float64
	for text := range strings.Lines(string(data)) {
		var line map[string]float64
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			w.t.Fatalf("metrics.jsonl: %v in %q", err, text)
		}
		lines = append(lines, line)
	}
	return lines
}

// result returns pass@1 of the evaluation of a version, as metrics.jsonl has it.
func (w *fixture) result(step int64) float64 {
	w.t.Helper()
	for _, line := range w.metrics() {
		if value, ok := line["test/pass@1"]; ok && int64(line["step"]) == step {
			return value
		}
	}
	w.t.Fatalf("metrics.jsonl has no evaluation of step %d", step)
	return 0
}

// rows reads the rows of the run, by step.
func (w *fixture) rows() []store.Row {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.artifacts, w.file.Run.UID, "rows", "*.json"))
	if err != nil {
		w.t.Fatal(err)
	}
	var rows []store.Row
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			w.t.Fatal(err)
		}
		var row store.Row
		if err := json.Unmarshal(data, &row); err != nil {
			w.t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}
