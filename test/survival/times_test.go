// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"math"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// TestTimesIncludeTheCommit saves states that take longer than everything else, and checks the times of the steps.
func TestTimesIncludeTheCommit(t *testing.T) {
	t.Parallel()
	const save = 0.4
	w := newFixture(t, func(f *contract.RunFile) { f.Evaluation = nil })
	w.addFaults(fault.Rule{Op: "save_weights", Do: fault.Pause, Seconds: save, Count: -1})
	w.startWorker("w0", behavior{})
	began := time.Now()
	progress := w.waitFor(w.startLearner(1, nil), contract.CauseCompleted).Progress
	elapsed := time.Since(began).Seconds()
	total, before := 0.0, 0.0
	for _, row := range w.rows() {
		saved := row.Metrics["time/save_checkpoint"]
		parts := row.Metrics["time/sampling"] + row.Metrics["time/train_step"] + row.Metrics["time/save_sampler"] + saved
		own := row.Metrics[contract.MetricStepSeconds]
		if own < parts || saved <= 0 {
			t.Errorf("step %d took %.2f s, its parts %.2f s, including the save with %.2f s", row.Step, own, parts, saved)
		}
		// The save occupies the model: the rest of its time after the next batch is decided belongs to the next step, which
		// prepares its operations and trains.
		if row.Step > 1 {
			saved = before + row.Metrics["time/sampling"] + row.Metrics["time/train_step"]
		}
		if row.Step > 1 && saved < save {
			t.Errorf("steps %d and %d have %.2f s for the save between them, want %.1f s at least", row.Step-1, row.Step, saved,
				save)
		}
		before = row.Metrics["time/save_checkpoint"]
		total += own
		if want := row.Metrics["batch/sampled_tokens"] / own; math.Abs(
			row.Metrics[contract.MetricSampledTokensPerSecond]-want) > 1e-6 {
			t.Errorf("step %d has %v tokens a second, want %v", row.Step, row.Metrics[contract.MetricSampledTokensPerSecond],
				want)
		}
		if math.Abs(row.TrainingSeconds-total) > 1e-6 {
			t.Errorf("step %d records %.3f s of training so far, want %.3f s", row.Step, row.TrainingSeconds, total)
		}
	}
	// The opening also saves a state.
	if total > elapsed-save || total < 3*save || math.Abs(progress.TrainingSeconds-total) > 1e-6 {
		t.Errorf("the steps took %.2f s of %.2f s, and %.2f s are reported", total, elapsed, progress.TrainingSeconds)
	}
	if got := progress.Metrics["time/save_checkpoint"]; got < save {
		t.Errorf("the newest metrics have a save of %.2f s, want %.1f s at least", got, save)
	}
	if lines := w.metrics(); lines[2]["time/save_checkpoint"] < save {
		t.Errorf("metrics.jsonl has %v for the last step, want its save", lines[2])
	}
}

// TestDeathBeforeTheTimeOfTheSave kills a learner before the time of a save is recorded, and checks that nothing else
// is lost.
func TestDeathBeforeTheTimeOfTheSave(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	w.startWorker("w0", behavior{})
	<-w.startLearner(1, w.dieAt("covered.sent", 2)).done
	w.checkSame(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted))
	for step, line := range w.metrics()[:3] {
		_, timed := line["time/save_checkpoint"]
		if want := step != 1; timed != want || line[contract.MetricStepSeconds] <= 0 {
			t.Errorf("step %d has the time of its save: %v, want %v; in all it took %v s", step, timed, want,
				line[contract.MetricStepSeconds])
		}
	}
}
