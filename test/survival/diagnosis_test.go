// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/diagnosis"
	"github.com/tinker-operator/tinker-operator/internal/history"
	"github.com/tinker-operator/tinker-operator/internal/rollout"
)

// diagnosed is a run whose figures are diagnosed.
type diagnosed struct {
	change func(*contract.RunFile)
	// shuffled exchanges the rewards of each group.
	shuffled bool
	// short says that the run is part of each run of the suite.
	short bool
	// want is the first cause that the diagnosis must name; empty for a run that learns.
	want diagnosis.Cause
}

// learnable changes a run file to 40 steps in which the policy learns to carry.
func learnable(f *contract.RunFile) {
	f.Fixed.Environments = []contract.Environment{arithmetic("train", 4096, 8, 16)}
	f.Fixed.Model.LoraRank = 8
	f.Fixed.Algorithm.TasksPerStep, f.Fixed.Algorithm.Steps = 16, 40
	f.Fixed.Algorithm.Optimizer.LearningRate = 5e-4
	env := arithmetic("test", 64, 1, 16)
	env.PassAt = []int{1}
	f.Evaluation = &contract.Evaluation{Before: true, After: true, EverySteps: 10,
		Environments: []contract.Environment{env}}
}

func learningAt(rate float64) func(*contract.RunFile) {
	return func(f *contract.RunFile) { f.Fixed.Algorithm.Optimizer.LearningRate = rate }
}

func clippingAt(norm float64) func(*contract.RunFile) {
	return func(f *contract.RunFile) { f.Fixed.Algorithm.Optimizer.GradClipNorm = norm }
}

func cuttingAt(tokens int32) func(*contract.RunFile) {
	return func(f *contract.RunFile) { f.Fixed.Environments[0].Sampling.MaxTokens = tokens }
}

func samplingAt(temperature float64) func(*contract.RunFile) {
	return func(f *contract.RunFile) { f.Fixed.Environments[0].Sampling.Temperature = &temperature }
}

func rewarding(expression string) func(*contract.RunFile) {
	return func(f *contract.RunFile) {
		f.Fixed.Environments[0].Definition.Reward = &settings.Reward{
			RewardRule: settings.RewardRule{Expression: expression}}
	}
}

func seeded(seed int64, changes ...func(*contract.RunFile)) func(*contract.RunFile) {
	return func(f *contract.RunFile) {
		f.Fixed.Algorithm.Seed, f.Fixed.Model.Seed = seed, seed
		for _, change := range changes {
			change(f)
		}
	}
}

func algorithmOf(change func(*algorithm.Algorithm)) func(*contract.RunFile) {
	return func(f *contract.RunFile) { change(f.Fixed.Algorithm) }
}

// diagnosedRuns returns runs that their settings spoil, and runs that learn. The thresholds of package diagnosis were
// fixed with 16 of the runs; the other settings and seeds were played afterwards.
func diagnosedRuns() map[string]diagnosed {
	const right = `reply.text == row.answer ? 1.0 : 0.0`
	lagging := algorithmOf(func(a *algorithm.Algorithm) { a.Lag = 2 })
	runs := map[string]diagnosed{
		"rate of 0.5, seed 1":      {change: learningAt(0.5), want: diagnosis.RewardFell, short: true},
		"rate of 0.5, seed 2":      {change: seeded(2, learningAt(0.5)), want: diagnosis.RewardFell},
		"rate of 0.1":              {change: learningAt(0.1), want: diagnosis.RewardFell},
		"rate of 0.1, seed 3":      {change: seeded(3, learningAt(0.1)), want: diagnosis.RewardFell},
		"rate of 0.05":             {change: learningAt(0.05), want: diagnosis.RewardFell},
		"rate of 0.05, seed 4":     {change: seeded(4, learningAt(0.05)), want: diagnosis.RewardFell},
		"rate of 0.05 with a lag":  {change: seeded(5, learningAt(0.05), lagging), want: diagnosis.RewardFell},
		"rate of 0.2 with a lag":   {change: seeded(6, learningAt(0.2), lagging), want: diagnosis.RewardFell},
		"rate of 1e-9":             {change: learningAt(1e-9), want: diagnosis.RewardUnchanged},
		"rate of 1e-9, seed 2":     {change: seeded(2, learningAt(1e-9)), want: diagnosis.RewardUnchanged},
		"rate of 1e-8, seed 3":     {change: seeded(3, learningAt(1e-8)), want: diagnosis.RewardUnchanged},
		"rate of 1e-8, seed 4":     {change: seeded(4, learningAt(1e-8)), want: diagnosis.RewardUnchanged},
		"shuffled rewards, seed 1": {change: seeded(1), shuffled: true, want: diagnosis.RewardUnchanged},
		"shuffled rewards, seed 2": {change: seeded(2), shuffled: true, want: diagnosis.RewardUnchanged},
		"clip at 1e-5":             {change: clippingAt(1e-5), want: diagnosis.GradientClipped},
		"clip at 1e-3":             {change: clippingAt(1e-3), want: diagnosis.GradientClipped},
		"clip at 1e-1":             {change: clippingAt(1e-1), want: diagnosis.GradientClipped},
		"1 token":                  {change: cuttingAt(1), want: diagnosis.RepliesCut, short: true},
		"1 token, seed 2":          {change: seeded(2, cuttingAt(1)), want: diagnosis.RepliesCut},
		"2 tokens":                 {change: cuttingAt(2), want: diagnosis.RepliesCut},
		"2 tokens, seed 3":         {change: seeded(3, cuttingAt(2)), want: diagnosis.RepliesCut},
		"reward of 0":              {change: rewarding("0.0"), want: diagnosis.NoGradient, short: true},
		"reward of 1":              {change: rewarding("1.0"), want: diagnosis.NoGradient},
		"reward of -1":             {change: rewarding("-1.0"), want: diagnosis.NoGradient},
		"reward of a word":         {change: rewarding(`reply.text == "yes" ? 1.0 : 0.0`), want: diagnosis.NoGradient},
		"reward of a wrong column": {change: rewarding(`reply.text == row.prompt ? 1.0 : 0.0`),
			want: diagnosis.NoGradient},
		"temperature of 0.001": {change: samplingAt(0.001), want: diagnosis.NoGradient},
		"temperature of 0.01":  {change: seeded(2, samplingAt(0.01)), want: diagnosis.NoGradient},
		"faults of a row in 3": {change: rewarding(`int(row.answer) % 3 == 0 ? double(row.no) : (` + right + `)`),
			want: diagnosis.EpisodesFault, short: true},
		"faults of a row in 4": {change: rewarding(`int(row.answer) % 4 == 0 ? double(row.no) : (` + right + `)`),
			want: diagnosis.EpisodesFault},
		"faults of a row in 8": {change: rewarding(`int(row.answer) % 8 == 0 ? double(row.no) : (` + right + `)`),
			want: diagnosis.EpisodesFault},
		"faults of a row in 8, seed 2": {change: seeded(2,
			rewarding(`int(row.answer) % 8 == 0 ? double(row.no) : (`+right+`)`)), want: diagnosis.EpisodesFault},
		"learns":                   {change: seeded(11), short: true},
		"learns, seed 1":           {change: seeded(1)},
		"learns, seed 2":           {change: seeded(2)},
		"learns, seed 3":           {change: seeded(3)},
		"learns at 3e-4":           {change: seeded(4, learningAt(3e-4))},
		"learns at 1e-3":           {change: seeded(5, learningAt(1e-3))},
		"learns with a lag":        {change: seeded(6, lagging)},
		"learns with groups of 16": {change: seeded(7, func(f *contract.RunFile) { f.Fixed.Environments[0].GroupSize = 16 })},
		"learns by CEL":            {change: seeded(8, rewarding(right))},
		"learns with a scale": {change: seeded(9,
			algorithmOf(func(a *algorithm.Algorithm) { a.Advantage.Scale = algorithm.ScaleGroupStd }))},
	}
	return runs
}

// TestDiagnosis trains runs and checks that the diagnosis names the cause that spoils each, and no cause for runs that
// learn. SURVIVAL_DIAGNOSIS=all trains all of diagnosedRuns.
func TestDiagnosis(t *testing.T) {
	runs := diagnosedRuns()
	for _, name := range slices.Sorted(maps.Keys(runs)) {
		tc := runs[name]
		if !tc.short && os.Getenv("SURVIVAL_DIAGNOSIS") != "all" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			found := tc.train(t)
			var first diagnosis.Cause
			if len(found) > 0 {
				first = found[0].Cause
			}
			t.Logf("found: %v", found)
			if first != tc.want {
				t.Errorf("the first cause is %q, want %q; all are %v", first, tc.want, found)
			}
		})
	}
}

// train trains the run and diagnoses it as the manager does.
func (d diagnosed) train(t *testing.T) []diagnosis.Finding {
	t.Helper()
	w := newFixture(t, func(f *contract.RunFile) {
		learnable(f)
		d.change(f)
	})
	w.startRolloutWorkerWith("w0", func(c *rollout.Config) {
		if d.shuffled {
			c.Learner = shufflingLearner{c.Learner}
		}
	})
	verdict := w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
	fault := verdict.Progress.Environments[0].Fault
	if named := strings.Contains(fault, "of split train, member") && strings.Contains(fault, "no such key: no"); named !=
		(d.want == diagnosis.EpisodesFault) {
		t.Errorf("the newest fault is %q", fault)
	}
	var h history.History
	for i, line := range w.metrics() {
		h.Add("learner", []contract.Record{{Number: int64(i + 1), Step: int64(line["step"]) + 1,
			Metrics: contract.RecordMetrics(line)}})
	}
	return diagnosis.Of(h.Rows, diagnosis.Settings{GradClipNorm: w.file.Fixed.Algorithm.Optimizer.GradClipNorm})
}
