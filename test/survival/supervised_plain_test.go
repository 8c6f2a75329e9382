// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/renderer/load"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/supervised"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/fetch"
)

// TestSupervisedWeightsAreThoseOfAPlainLoop trains the same rows with nothing but forward_backward and optim_step. The
// conformance tests of test/supervised compare such a loop with tinker-cookbook.
func TestSupervisedWeightsAreThoseOfAPlainLoop(t *testing.T) {
	t.Parallel()
	want := supervisedBaseline(t)
	w := newSupervised(t)
	data, err := os.ReadFile(filepath.Join(w.data, "configmap", "rows", "rows.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(string(data)), "\n")[10:]
	format, err := load.ForModel(t.Context(), &fetch.Fetcher{}, w.file.Fixed.Model)
	if err != nil {
		t.Fatal(err)
	}
	builder := supervised.Builder{Renderer: format, TrainOn: supervised.AllAssistant,
		Normalization: supervised.PerExample}
	stream, err := rl.NewStream(uint64(w.file.Fixed.Algorithm.Seed), []rl.Source{{Environment: "supervised",
		Split: "train", Tasks: int64(len(rows)), Shuffle: true}})
	if err != nil {
		t.Fatal(err)
	}
	batches := supervised.Batches{Stream: stream, Size: w.file.Fixed.Supervised.BatchSize}
	model := w.plainModel()
	cursor := int64(0)
	for range w.file.Fixed.Algorithm.Steps {
		batch, err := batches.Next(t.Context(), cursor, func(_ context.Context, task rl.Task) (supervised.Datum, error) {
			return builder.Datum([]byte(rows[task.Index]))
		})
		if err != nil {
			t.Fatal(err)
		}
		cursor = batch.Next
		w.plainStep(model, batch.Datums)
	}
	save, err := model.SaveState(t.Context(), client.SaveRequest{Name: "final"})
	if err != nil {
		t.Fatal(err)
	}
	saved, err := save.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := w.archive(saved.Path); got != want.adapter {
		t.Errorf("the adapter of a plain loop is %s, and the adapter of a run %s", got, want.adapter)
	}
}

// plainModel makes a model with the settings of the run.
func (w *fixture) plainModel() *client.Model {
	w.t.Helper()
	session, err := w.client.CreateSession(w.t.Context(), client.SessionRequest{})
	if err != nil {
		w.t.Fatal(err)
	}
	base := w.file.Fixed.Model
	model, err := w.client.CreateModel(w.t.Context(), tinker.CreateModelRequest{
		Session: session, BaseModel: base.Name,
		Lora: tinker.LoraConfig{Rank: base.LoraRank, Seed: &base.Seed, TrainUnembed: base.TrainUnembed,
			TrainMLP: base.TrainMLP, TrainAttn: base.TrainAttention},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return model
}

// plainStep trains a model on examples once.
func (w *fixture) plainStep(model *client.Model, examples []supervised.Datum) {
	w.t.Helper()
	var datums []tinker.Datum
	for _, e := range examples {
		targets := make([]int64, len(e.Targets))
		for i, token := range e.Targets {
			targets[i] = int64(token)
		}
		datums = append(datums, tinker.Datum{ModelInput: tinker.Text(e.Tokens), LossFnInputs: map[string]tinker.Tensor{
			tinker.InputTargetTokens: tinker.Ints(targets), tinker.InputWeights: tinker.Floats(e.Weights)}})
	}
	pass, err := model.ForwardBackward(w.t.Context(), datums, tinker.Loss{Name: tinker.LossCrossEntropy})
	if err == nil {
		_, err = pass.Wait(w.t.Context())
	}
	if err != nil {
		w.t.Fatal(err)
	}
	o := w.file.Fixed.Algorithm.Optimizer
	update, err := model.OptimStep(w.t.Context(), tinker.AdamParams{LearningRate: o.LearningRate, Beta1: *o.Beta1,
		Beta2: *o.Beta2, Eps: o.Epsilon})
	if err == nil {
		_, err = update.Wait(w.t.Context())
	}
	if err != nil {
		w.t.Fatal(err)
	}
}
