// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
)

// mark is a moment of a run: the clock, and the server's counters at that time.
type mark struct {
	at   time.Time
	busy tinkersim.Stats
}

// BenchmarkStep trains 32 groups of 8 with two workers and compares the time of a step with the server's own time for
// it: sampling, training and saving, by its own count. The first steps and the last are left out, so that opening and
// ending do not count.
func BenchmarkStep(b *testing.B) {
	const steps, first, last = 40, 5, 35
	for b.Loop() {
		w := newFixture(b, func(f *contract.RunFile) {
			f.Fixed.Environments = []contract.Environment{arithmetic("train", 4000, 8, 16)}
			f.Fixed.Model.LoraRank = 8
			f.Fixed.Algorithm.TasksPerStep, f.Fixed.Algorithm.Steps = 32, steps
			f.Fixed.Algorithm.Optimizer.LearningRate = 3e-4
			f.Concurrency, f.Evaluation = 256, nil
		})
		w.startRolloutWorker("w0")
		w.startRolloutWorker("w1")
		marks := map[int64]mark{}
		w.waitFor(w.startLearner(1, func(_ context.Context, _ func() error, point string, step int64) error {
			if point == "covered.sent" && (step == first || step == last) {
				marks[step] = mark{at: time.Now(), busy: w.sim.Stats()}
			}
			return nil
		}), contract.CauseCompleted)
		begin, end := marks[first], marks[last]
		if begin.at.IsZero() || end.at.IsZero() {
			b.Fatal("the run passed no marks")
		}
		wall := end.at.Sub(begin.at).Seconds()
		bound := work(end.busy) - work(begin.busy)
		b.ReportMetric(wall/bound, "step/bound")
		b.ReportMetric(1000*wall/(last-first), "ms/step")
		b.ReportMetric(1000*bound/(last-first), "ms-bound/step")
	}
	b.ReportMetric(0, "ns/op")
}

// work is the seconds that the server was busy.
func work(b tinkersim.Stats) float64 { return b.SamplingSeconds + b.TrainingSeconds + b.SavingSeconds }

// BenchmarkSharedPrompt trains 32 groups of 8 with sharedPrompt and without it, and compares the purchases of a group:
// its number of prompts, by their tokens, and its number of requests. The goal of both is 1 with sharedPrompt.
func BenchmarkSharedPrompt(b *testing.B) {
	const steps, groups, members = 4, 32, 8
	run := func(change func(*contract.RunFile)) (tokens, requests float64) {
		w := newFixture(b, func(f *contract.RunFile) {
			f.Fixed.Environments = []contract.Environment{arithmetic("train", 4000, members, 16)}
			f.Fixed.Algorithm.TasksPerStep, f.Fixed.Algorithm.Steps = groups, steps
			f.Concurrency, f.Evaluation = groups*members, nil
			change(f)
		})
		w.startRolloutWorker("w0")
		w.startRolloutWorker("w1")
		verdict := w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
		return float64(verdict.Progress.Usage.PromptTokens), float64(w.sim.Stats().Calls["asample"])
	}
	for b.Loop() {
		own, ownRequests := run(func(*contract.RunFile) {})
		shared, sharedRequests := run(withSharedPrompts)
		b.ReportMetric(members*shared/own, "shared-prompts/group")
		b.ReportMetric(sharedRequests/(steps*groups), "shared-requests/group")
		b.ReportMetric(shared/(steps*groups), "shared-prompt-tokens/group")
		b.ReportMetric(own/(steps*groups), "prompt-tokens/group")
		b.ReportMetric(ownRequests/(steps*groups), "requests/group")
	}
	b.ReportMetric(0, "ns/op")
}
