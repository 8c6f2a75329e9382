// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build observe

package observe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/export"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
)

// tolerance is how far log-probabilities of the packages and of the simulator's trainer may be apart, in nats.
const tolerance = 1e-3

// prompts returns sums with their answers.
func prompts() []string {
	var texts []string
	for i := range 20 {
		a, b := 7*i%100, 13*i%100
		texts = append(texts, fmt.Sprintf("What is %d + %d?\n%d + %d = %d", a, b, a, b, a+b))
	}
	return texts
}

// exportedBase exports a base model with tinkersim export-base, and returns its folder.
func exportedBase(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "base")
	output, err := exec.CommandContext(t.Context(), "go", "run", "../../cmd/tinkersim", "export-base",
		dir).CombinedOutput()
	if err != nil {
		t.Fatalf("exporting the base: %v\n%s", err, output)
	}
	return dir
}

// ask runs peft_calls.py with a value as its input, and decodes its output.
func ask(t *testing.T, input, output any, arguments ...string) {
	t.Helper()
	data, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), filepath.Join(venv(t, "peft"), "bin", "python"),
		append([]string{"peft_calls.py"}, arguments...)...)
	command.Stdin = bytes.NewReader(data)
	var log strings.Builder
	command.Stderr = &log
	answer, err := command.Output()
	if err == nil {
		err = json.Unmarshal(answer, output)
	}
	if err != nil {
		t.Fatalf("running %v: %v\n%s", arguments, err, log.String())
	}
}

// TestTransformersNames compares the names and shapes that transformers saves with the record that the tests of the
// export use.
func TestTransformersNames(t *testing.T) {
	const record = "../../internal/tinkersim/export/testdata/arcee.txt"
	var shapes map[string][]int
	ask(t, nil, &shapes, "names", exportedBase(t))
	var lines []string
	for name, shape := range shapes {
		lines = append(lines, fmt.Sprintf("%s %v\n", name, shape))
	}
	slices.Sort(lines)
	got := strings.Join(lines, "")
	if *update {
		if err := os.WriteFile(record, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("names and shapes (-record +transformers):\n%s", diff)
	}
}

func TestTransformersTokens(t *testing.T) {
	var got [][]int32
	texts := append(prompts(), "ä €<|end|>")
	ask(t, texts, &got, "tokens", exportedBase(t))
	for i, text := range texts[:20] {
		want := make([]int32, 0, len(text))
		for _, b := range []byte(text) {
			want = append(want, int32(b))
		}
		if diff := cmp.Diff(want, got[i]); diff != "" {
			t.Errorf("tokens of %q (-bytes +transformers):\n%s", text, diff)
		}
	}
	if last := got[20]; len(last) != 7 || last[6] != model.TokenEnd {
		t.Errorf("the tokens of a text with a special token are %v", last)
	}
}

// TestTransformersLogprobs trains adapters, and compares the log-probabilities of 20 prompts under base and adapter
// with the log-probabilities of the simulator's trainer. It trains far enough that the adapter decides them.
func TestTransformersLogprobs(t *testing.T) {
	base := exportedBase(t)
	for name, config := range map[string]model.Config{
		"all matrices": {Rank: 8, Seed: 1, TrainAttention: true, TrainMLP: true, TrainUnembed: true},
		"attention":    {Rank: 4, Seed: 2, TrainAttention: true},
		"MLPs":         {Rank: 32, Seed: 3, TrainMLP: true},
	} {
		t.Run(name, func(t *testing.T) {
			adapter := model.NewAdapter(model.Base(), config)
			batch, sequences := batchOf(prompts())
			before := logprobs(t, adapter, batch)
			for range 20 {
				if _, err := adapter.ForwardBackward(t.Context(), batch, model.Loss{Name: "cross_entropy"}); err != nil {
					t.Fatal(err)
				}
				if _, err := adapter.OptimStep(model.AdamParams{LearningRate: 1e-2, Beta1: 0.9, Beta2: 0.95,
					Eps: 1e-12}); err != nil {
					t.Fatal(err)
				}
			}
			want := logprobs(t, adapter, batch)
			if moved := distance(before, want); moved < 0.1 {
				t.Fatalf("training has changed the log-probabilities by %g at most", moved)
			}
			var got [][]float32
			ask(t, sequences, &got, "logprobs", base, written(t, adapter))
			d := distance(want, got)
			t.Logf("the log-probabilities are %g apart at most", d)
			if d > tolerance {
				t.Errorf("the log-probabilities are %g apart, want at most %g", d, tolerance)
			}
		})
	}
}

// written writes the files of an adapter to a folder.
func written(t *testing.T, adapter *model.Adapter) string {
	t.Helper()
	dir := t.TempDir()
	files, err := export.PEFTFiles("tinkersim/byte-136k", adapter)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if err := os.WriteFile(filepath.Join(dir, file.Name), file.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// batchOf returns texts as datums, each token predicting the next, and as sequences of tokens.
func batchOf(texts []string) (batch []model.Datum, sequences [][]int32) {
	for _, text := range texts {
		var tokens []int32
		var targets []int64
		var weights []float32
		for i, b := range []byte(text) {
			tokens = append(tokens, int32(b))
			if i > 0 {
				targets, weights = append(targets, int64(b)), append(weights, 1)
			}
		}
		batch = append(batch, model.Datum{Tokens: tokens[:len(tokens)-1], Inputs: map[string]model.Tensor{
			"target_tokens": {Int: targets}, "weights": {Float: weights},
		}})
		sequences = append(sequences, tokens)
	}
	return batch, sequences
}

func logprobs(t *testing.T, adapter *model.Adapter, batch []model.Datum) [][]float32 {
	t.Helper()
	result, err := adapter.Forward(t.Context(), batch, model.Loss{Name: "cross_entropy"})
	if err != nil {
		t.Fatal(err)
	}
	return result.Logprobs
}

// distance returns the largest difference of two lists, which is infinite if their lengths differ.
func distance(a, b [][]float32) float64 {
	largest := 0.0
	for i := range a {
		if len(a) != len(b) || len(a[i]) != len(b[i]) {
			return math.Inf(1)
		}
		for j := range a[i] {
			largest = max(largest, math.Abs(float64(a[i][j])-float64(b[i][j])))
		}
	}
	return largest
}
