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

// TestDistillationSampleLearns trains a part of the sample distillation.yaml: the policy comes closer to the teacher,
// and solves more held-out tasks, without a reward.
func TestDistillationSampleLearns(t *testing.T) {
	t.Parallel()
	s := sample.Read(t, "distillation.yaml")
	builder := registry.Builder{Data: source.New(source.Config{Dir: t.TempDir(), Space: 1 << 24}).Open}
	file := s.RunFile(t, s.Pins(t, builder))
	w := newFixture(t, func(f *contract.RunFile) {
		f.Fixed, f.Evaluation, f.Checkpoints, f.Steps = file.Fixed, file.Evaluation, file.Checkpoints, file.Steps
		f.Steps, f.Evaluation.EverySteps = 20, 0
	})
	w.startJudgedWorkerOf("w0", judgedWorker{builder: builder})
	w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
	steps := w.file.Algorithm().Steps
	before, after := w.evaluatedOf(0)[contract.MetricPassAt1], w.evaluatedOf(steps)[contract.MetricPassAt1]
	t.Logf("pass@1 from %.3f to %.3f", before, after)
	lines := w.metrics()
	first, last := lines[0]["teacher_kl"], lines[steps-1]["teacher_kl"]
	t.Logf("teacher_kl from %.3f to %.3f", first, last)
	if after < before+0.1 {
		t.Errorf("pass@1 of held-out tasks is %v after and %v before, want 0.1 more", after, before)
	}
	if last > first/2 {
		t.Errorf("teacher_kl is %v in the last step and %v in the first, want half of it", last, first)
	}
}
