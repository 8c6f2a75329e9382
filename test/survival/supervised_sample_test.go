// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/source"
	"github.com/tinker-operator/tinker-operator/internal/environment/registry"
	"github.com/tinker-operator/tinker-operator/test/sample"
)

// TestSupervisedSampleLearns trains a part of the sample sft.yaml: the negative log-likelihood of held-out rows falls,
// and its policy solves more held-out tasks.
func TestSupervisedSampleLearns(t *testing.T) {
	t.Parallel()
	s := sample.Read(t, "sft.yaml")
	builder := registry.Builder{Data: source.New(source.Config{Dir: t.TempDir(), Space: 1 << 24}).Open}
	file := s.RunFile(t, s.Pins(t, builder))
	w := newFixture(t, func(f *contract.RunFile) {
		f.Fixed, f.Evaluation, f.Checkpoints, f.Steps = file.Fixed, file.Evaluation, file.Checkpoints, file.Steps
		f.Steps = 30
	})
	w.startJudgedWorkerOf("w0", judgedWorker{builder: builder})
	w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
	steps := w.file.Algorithm().Steps
	before, after := w.evaluatedOf(0), w.evaluatedOf(steps)
	t.Logf("held-out nll from %.3f to %.3f, pass@1 from %.3f to %.3f", before[contract.MetricHeldOutNLL],
		after[contract.MetricHeldOutNLL], before[contract.MetricPassAt1], after[contract.MetricPassAt1])
	if after[contract.MetricHeldOutNLL] > 0.8*before[contract.MetricHeldOutNLL] {
		t.Errorf("the negative log-likelihood of held-out rows is %v after and %v before, want a fifth less",
			after[contract.MetricHeldOutNLL], before[contract.MetricHeldOutNLL])
	}
	if after[contract.MetricPassAt1] < before[contract.MetricPassAt1]+0.1 {
		t.Errorf("pass@1 of held-out tasks is %v after and %v before, want 0.1 more", after[contract.MetricPassAt1],
			before[contract.MetricPassAt1])
	}
}

// evaluatedOf returns the metrics of a step, which include all metrics of its evaluations.
func (w *fixture) evaluatedOf(step int64) map[string]float64 {
	w.t.Helper()
	for _, line := range w.metrics() {
		if int64(line["step"]) == step {
			return line
		}
	}
	w.t.Fatalf("step %d was not evaluated", step)
	return nil
}
