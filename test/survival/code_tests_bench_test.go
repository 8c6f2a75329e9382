// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/source"
	"github.com/tinker-operator/tinker-operator/internal/environment/registry"
	"github.com/tinker-operator/tinker-operator/test/sample"
)

// BenchmarkCodeTests measures the learning of the environment of the sample code-tests.yaml. Its reward, prompt and
// run are the sample's, with two differences. The sample has twelve tasks: here they are sums, of which 64 are held
// out, and there are 24 steps with half of the learning rate. And the simulator's model writes no programs: a
// supervised run first shows it programs that print the sum, the difference, the product or the remainder of the two
// numbers, each equally often. Only the tests say which of the programs is right.
func BenchmarkCodeTests(b *testing.B) {
	learningSample{
		file: "code-tests.yaml", metrics: []string{"pass@1"}, tasks: heldOutSums, samples: 4, python: true,
		alter: withSums, begin: showPrograms,
		change: func(f *contract.RunFile) {
			f.Fixed.Algorithm.Steps, f.Fixed.Algorithm.Optimizer.LearningRate = 24, 1.5e-4
		},
	}.measure(b)
}

// heldOutSums is the number of sums in the split test of the sample.
const heldOutSums = 64

// drawSum draws a question about two numbers.
func drawSum(random *rand.Rand) (question string, left, right int) {
	left, right = random.IntN(100), random.IntN(100)
	return fmt.Sprintf("What is %d + %d?", left, right), left, right
}

// withSums replaces the tasks of the sample by sums.
func withSums(s *sample.Sample) {
	const tasks = 2048
	random := rand.New(rand.NewPCG(1, 1))
	rows := make([]map[string]any, tasks)
	for i := range rows {
		question, left, right := drawSum(random)
		rows[i] = map[string]any{
			"question": question, "solution": fmt.Sprintf("print(%d+%d)", left, right),
			"tests": []any{map[string]string{"input": "", "output": strconv.Itoa(left + right)}},
		}
	}
	s.ConfigMaps[0].Data["rows.jsonl"] = linesOf(rows)
	splits := s.Environments[0].Spec.Dataset.Splits
	*splits[0].Take, splits[1].Skip = heldOutSums, heldOutSums
}

// showPrograms trains on programs with the settings of the sample sft.yaml.
func showPrograms(b *testing.B, seed int64) (w *fixture, state string) {
	b.Helper()
	const steps, batch = 120, 64
	s := sample.Read(b, "sft.yaml")
	file := s.RunFile(b, s.Pins(b, registry.Builder{Data: source.New(source.Config{Dir: b.TempDir()}).Open}))
	w = newFixture(b, func(f *contract.RunFile) {
		f.Fixed, f.Evaluation, f.Checkpoints.KeepBestMetric = file.Fixed, nil, ""
		f.Fixed.Algorithm.Seed, f.Fixed.Model.Seed = seed, seed
		f.Fixed.Algorithm.Steps, f.Fixed.Supervised.BatchSize = steps, batch
		f.Fixed.Supervised.Dataset = contract.Dataset{Dataset: settings.Dataset{
			JSONL:  &settings.JSONL{ConfigMapRef: &ref.ConfigMap{Name: "rows"}},
			Splits: []settings.DataSplit{{Name: "train", Source: "rows.jsonl"}},
		}}
	})
	random := rand.New(rand.NewPCG(uint64(seed), 2))
	rows := make([]map[string]any, steps*batch)
	for i := range rows {
		question, left, right := drawSum(random)
		rows[i] = map[string]any{
			"prompt":     question + "\nReply with a block of code.",
			"completion": fmt.Sprintf("```\nprint(%d%c%d)\n```", left, "+-*%"[random.IntN(4)], right),
		}
	}
	w.writeRows(linesOf(rows))
	learner := w.startLearner(1, nil)
	<-learner.done // however long that takes
	return w, w.waitFor(learner, contract.CauseCompleted).Progress.Checkpoints[0].State
}

// linesOf returns rows as lines of JSON.
func linesOf(rows []map[string]any) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	for _, row := range rows {
		_ = encoder.Encode(row) // maps of texts can be encoded, and a builder takes everything
	}
	return text.String()
}
