// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/source"
	"github.com/tinker-operator/tinker-operator/internal/environment/registry"
	"github.com/tinker-operator/tinker-operator/internal/rollout"
	"github.com/tinker-operator/tinker-operator/test/sample"
)

// BenchmarkSupervisedSample measures the learning of the sample sft.yaml, with three seeds, and as a control with rows
// that have the answers of other rows.
func BenchmarkSupervisedSample(b *testing.B) {
	const seeds, wanted, bound = 3, 0.1, 0.05
	l := learningSample{file: "sft.yaml", metrics: []string{"pass@1", "nll"}, tasks: 512, samples: 1}
	control := learningSample{file: l.file, metrics: []string{"pass@1"}, tasks: l.tasks, samples: l.samples,
		rows: sumsWithAnswersOfOthers(8000), change: func(f *contract.RunFile) {
			f.Evaluation.HeldOut = nil
			f.Fixed.Supervised.Dataset = contract.Dataset{Dataset: settings.Dataset{
				JSONL:  &settings.JSONL{ConfigMapRef: &ref.ConfigMap{Name: "rows"}},
				Splits: []settings.DataSplit{{Name: "train", Source: "rows.jsonl"}},
			}}
		}}
	for b.Loop() {
		least, fall, most := math.Inf(1), math.Inf(1), math.Inf(-1)
		for seed := range int64(seeds) {
			changes := l.train(b, seed, false)
			least = min(least, changes["pass@1"].rise())
			fall = min(fall, 1-changes["nll"].after/changes["nll"].before)
			most = max(most, control.train(b, seed, false)["pass@1"].rise())
		}
		b.ReportMetric(least, "pass@1-rise")
		b.ReportMetric(fall, "nll-fall")
		b.ReportMetric(most, "pass@1-rise-wrong-answers")
		if least < wanted || fall < wanted || most > bound {
			b.Errorf("pass@1 rose by %.3f and nll fell by %.3f of itself with one of the seeds, and pass@1 rose by %.3f with "+
				"the answers of others, want %.2f, %.2f, and at most %.2f", least, fall, most, wanted, wanted, bound)
		}
	}
	b.ReportMetric(0, "ns/op")
}

// sumsWithAnswersOfOthers returns rows with the prompts of arithmetic, and the answers of other rows. The answers say
// nothing about the prompts.
func sumsWithAnswersOfOthers(n int) string {
	const operands, stride = 100, 37
	var rows strings.Builder
	for i := range n {
		other := (i*stride + n/2) % (operands * operands)
		fmt.Fprintf(&rows, `{"prompt": "What is %d + %d?", "completion": "%d"}`+"\n", i%operands, i/operands%operands,
			other%operands+other/operands)
	}
	return rows.String()
}

// BenchmarkChain measures the learning of the runs of the sample sft-then-rl.yaml one after the other, with three
// seeds, and as a control with shuffled rewards in the second run.
func BenchmarkChain(b *testing.B) {
	const seeds, wanted, bound = 3, 0.05, 0.05
	for b.Loop() {
		least, fall, most := math.Inf(1), math.Inf(1), math.Inf(-1)
		for seed := range int64(seeds) {
			nll, pass := trainChain(b, seed, false)
			least, fall = min(least, pass.rise()), min(fall, 1-nll.after/nll.before)
			_, pass = trainChain(b, seed, true)
			most = max(most, pass.rise())
		}
		b.ReportMetric(fall, "nll-fall")
		b.ReportMetric(least, "pass@1-rise")
		b.ReportMetric(most, "pass@1-rise-shuffled")
		if least < wanted || fall < wanted || most > bound {
			b.Errorf("nll fell by %.3f of itself in the first run and pass@1 rose by %.3f in the second with one of the "+
				"seeds, and by %.3f with shuffled rewards, want %.2f, %.2f, and at most %.2f", fall, least, most, wanted,
				wanted, bound)
		}
	}
	b.ReportMetric(0, "ns/op")
}

// trainChain trains both runs of sft-then-rl.yaml, and returns how nll of held-out rows changed in the first, and
// pass@1 of held-out tasks in the second.
func trainChain(b *testing.B, seed int64, shuffled bool) (nll, pass change) {
	b.Helper()
	s := sample.Read(b, "sft-then-rl.yaml")
	builder := registry.Builder{Data: source.New(source.Config{Dir: b.TempDir(), Space: 1 << 24}).Open}
	pins, runs := s.Pins(b, builder), s.Runs
	configure := func(f *contract.RunFile, i int) {
		run := runs[i].DeepCopy()
		run.Spec.InitFrom = nil // beginNext sets it
		s.Runs = []*v1alpha1.TrainingRun{run}
		file := s.RunFile(b, pins)
		file.Fixed.InitFrom = f.Fixed.InitFrom
		f.Fixed, f.Evaluation, f.Concurrency, f.Steps = file.Fixed, file.Evaluation, file.Concurrency, file.Steps
		f.Fixed.Algorithm.Seed, f.Fixed.Model.Seed, f.Evaluation.EverySteps = seed, seed, 0
	}
	w := newFixture(b, func(f *contract.RunFile) { configure(f, 0) })
	train := func(name string) (changed change, newest string) {
		learner := w.startLearner(1, nil)
		<-learner.done // however long that takes
		verdict := w.waitFor(learner, contract.CauseCompleted)
		changed = change{before: w.evaluated(0, name), after: w.evaluated(w.file.Algorithm().Steps, name)}
		b.Logf("seed %d, shuffled rewards: %v: %s from %.3f to %.3f", seed, shuffled, name, changed.before, changed.after)
		return changed, verdict.Progress.Checkpoints[0].State
	}
	nll, state := train(contract.MetricHeldOutNLL)
	w.beginNext(state, func(f *contract.RunFile) {
		configure(f, 1)
		f.Evaluation.Environments[0].Splits[0].Tasks = 512
	})
	worker := judgedWorker{builder: builder}
	if shuffled {
		worker.learner = func(inner rollout.Learner) rollout.Learner { return shufflingLearner{inner} }
	}
	w.startJudgedWorkerOf("w0", worker)
	pass, _ = train(contract.MetricPassAt1)
	return nll, pass
}
