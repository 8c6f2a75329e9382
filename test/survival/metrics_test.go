// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/metric"
)

// checkMetrics checks that metrics.jsonl has the metrics of each step exactly once, in order.
func (w *fixture) checkMetrics() {
	w.t.Helper()
	steps := w.trainedSteps()
	if want := w.file.Algorithm().Steps; int64(len(steps)) != want {
		w.t.Fatalf("metrics.jsonl has the steps %v, want 0 to %d", steps, want-1)
	}
	for i, step := range steps {
		if step != int64(i) {
			w.t.Fatalf("metrics.jsonl has the steps %v, want each once and in order", steps)
		}
	}
}

// outcome is the result of a run.
type outcome struct {
	// adapter is the digest of the final adapter.
	adapter string
	// metrics are the lines of metrics.jsonl without the metrics that depend on time.
	metrics []map[string]float64
	usage   contract.Usage
}

// outcome reads the result of the run. It requires that metrics.jsonl has each step exactly once.
func (w *fixture) outcome(verdict contract.Verdict) outcome {
	w.t.Helper()
	w.checkSpent(verdict)
	return outcome{adapter: w.weights(verdict), metrics: w.timelessMetrics(), usage: verdict.Progress.Usage}
}

// checkSpent checks that the simulator billed all tokens that the run has reported, and that the reported and the
// unconfirmed tokens together cover the bill.
func (w *fixture) checkSpent(verdict contract.Verdict) {
	w.t.Helper()
	used, billed := verdict.Progress.Usage, w.sim.Stats().Billed
	asked := billed.PromptTokens + billed.SampledTokens - w.billed.PromptTokens - w.billed.SampledTokens
	trained := billed.ForwardBackwardTokens +
		billed.ForwardTokens - w.billed.ForwardBackwardTokens - w.billed.ForwardTokens
	// Judges need not be at the simulator.
	answered, judged := used.PromptTokens+used.SampledTokens+used.ReferenceTokens+used.TeacherTokens,
		used.JudgePromptTokens+used.JudgeSampledTokens
	if answered > asked || used.TrainedTokens > trained {
		w.t.Errorf("the usage is %+v, and the simulator has billed %d tokens of samples and %d of training, which is less",
			used, asked, trained)
	}
	if asked+trained > answered+judged+used.TrainedTokens+used.UnconfirmedTokens {
		w.t.Errorf("the usage is %+v, and the simulator has billed %d tokens of samples and %d of training, which is more",
			used, asked, trained)
	}
}

// timelessMetrics reads the lines of metrics.jsonl without the metrics that depend on time.
func (w *fixture) timelessMetrics() []map[string]float64 {
	w.t.Helper()
	w.checkMetrics()
	lines := w.metrics()
	for _, line := range lines {
		maps.DeleteFunc(line, func(name string, _ float64) bool {
			return strings.HasPrefix(name, "time/") || name == contract.MetricSampledTokensPerSecond
		})
	}
	return lines
}

// compare requires that the run has the weights and metrics of another.
func (w *fixture) compare(verdict contract.Verdict, want outcome) {
	w.t.Helper()
	w.checkSpent(verdict)
	w.compareTrained(verdict, want)
}

// compareTrained is compare for a simulator that has also billed other runs.
func (w *fixture) compareTrained(verdict contract.Verdict, want outcome) {
	w.t.Helper()
	if got := w.weights(verdict); got != want.adapter {
		w.t.Errorf("final adapter is %s, undisturbed %s", got, want.adapter)
	}
	w.compareMetrics(want)
}

// compareWeights is compare for runs that have sampled other groups, but trained on the same groups.
func (w *fixture) compareWeights(verdict contract.Verdict, want outcome) {
	w.t.Helper()
	got := w.outcome(verdict)
	if got.adapter != want.adapter {
		w.t.Errorf("final adapter is %s, undisturbed %s", got.adapter, want.adapter)
	}
}

// compareMetrics requires that the run has the metrics of another.
func (w *fixture) compareMetrics(want outcome) {
	w.t.Helper()
	if diff := cmp.Diff(want.metrics, w.timelessMetrics()); diff != "" {
		w.t.Errorf("metrics.jsonl (-undisturbed +got):\n%s", diff)
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

// metrics reads the lines of metrics.jsonl, and adds each result of evaluations.jsonl to the line of the step that
// began with the evaluated version. It requires that metrics.jsonl has one line for each batch, and no lines for
// evaluations.
func (w *fixture) metrics() []map[string]float64 {
	w.t.Helper()
	lines := map[int64]map[string]float64{}
	add := func(step int64, values map[string]float64) {
		if lines[step] == nil {
			lines[step] = map[string]float64{"step": float64(step)}
		}
		for name := range values {
			if _, described := metric.Describe(name); !described && name != "step" {
				w.t.Errorf("metric %q has no description in internal/metric", name)
			}
		}
		maps.Copy(lines[step], values)
	}
	for _, line := range readLines[map[string]float64](w, "metrics.jsonl") {
		step := int64(line["step"])
		if _, trained := line["progress/batch"]; !trained || lines[step] != nil {
			w.t.Fatalf("metrics.jsonl has %v, want one line of each batch", line)
		}
		add(step, line)
	}
	for _, e := range readLines[artifacts.Evaluation](w, "evaluations.jsonl") {
		add(e.Step, e.Metrics)
	}
	list := make([]map[string]float64, 0, len(lines))
	for _, step := range slices.Sorted(maps.Keys(lines)) {
		list = append(list, lines[step])
	}
	return list
}

// readLines reads a file of the run's artifacts with a JSON value on each line.
func readLines[T any](w *fixture, name string) (list []T) {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.artifacts, w.file.Run.UID, name))
	if err != nil {
		w.t.Fatal(err)
	}
	for text := range strings.Lines(string(data)) {
		var line T
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			w.t.Fatalf("%s: %v in %q", name, err, text)
		}
		list = append(list, line)
	}
	return list
}

// result returns pass@1 of the evaluation of a version, as evaluations.jsonl has it.
func (w *fixture) result(step int64) float64 {
	w.t.Helper()
	return w.evaluated(step, "test/pass@1")
}

// evaluated returns a metric of the evaluation of a version, as evaluations.jsonl has it.
func (w *fixture) evaluated(step int64, metric string) float64 {
	w.t.Helper()
	for _, line := range w.metrics() {
		if value, ok := line[metric]; ok && int64(line["step"]) == step {
			return value
		}
	}
	w.t.Fatalf("evaluations.jsonl has no %s of an evaluation of step %d", metric, step)
	return 0
}

// rows reads the rows of the run, by step.
func (w *fixture) rows() []artifacts.Row {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.artifacts, w.file.Run.UID, "rows", "*.json"))
	if err != nil {
		w.t.Fatal(err)
	}
	var rows []artifacts.Row
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			w.t.Fatal(err)
		}
		var row artifacts.Row
		if err := json.Unmarshal(data, &row); err != nil {
			w.t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}
