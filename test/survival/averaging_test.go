// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/dialect"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/simulatortest"
)

// trainAt takes steps on sequences of different lengths, and returns the log-probabilities of the last one. Its epsilon
// is so great that a step is proportional to the gradient.
func trainAt(t *testing.T, name string, compensated bool) []float64 {
	t.Helper()
	_, url := simulatortest.Serve(t, tinkersim.Options{Dialect: name})
	api, err := client.New(client.Config{BaseURL: url, APIKey: apiKey})
	if err != nil {
		t.Fatal(err)
	}
	api.UseJSON()
	session, err := api.CreateSession(t.Context(), client.SessionRequest{})
	if err != nil {
		t.Fatal(err)
	}
	factory := &trainee.Factory{
		API: api, Session: func(context.Context) (string, error) { return session, nil }, RunUID: "uid", Now: time.Now,
		Base: contract.Model{Name: tinkersim.ModelName, LoraRank: 4, TrainAttention: true, TrainMLP: true, TrainUnembed: true, Seed: 7},
	}
	factory.Averages.Store(compensated)
	model, err := factory.Fresh(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var last trainee.Replies
	for range 4 {
		training, err := model.Train(t.Context(), trainee.Step{
			Datums: unequalDatums(), Substeps: 1, Losses: trainee.LossesOf(contract.Algorithm{Loss: contract.Loss{Name: contract.LossImportanceSampling}}),
			Adam: tinker.AdamParams{LearningRate: 1e3, Beta1: 0.9, Beta2: 0.95, Eps: 1e8},
		})
		if err == nil {
			last, err = training.Wait(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var all []float64
	for _, logprobs := range last.Logprobs {
		for _, v := range logprobs {
			all = append(all, float64(v))
		}
	}
	return all
}

// unequalDatums are sequences of different lengths, each with a prompt without advantages.
func unequalDatums() []rl.Datum {
	var datums []rl.Datum
	for n := 3; n < 12; n += 2 {
		d := rl.Datum{Slot: int64(n)}
		for i := range n {
			d.Tokens, d.Targets = append(d.Tokens, int32(60+i*n%30)), append(d.Targets, int32(60+(i+1)*n%30))
			advantage := float32(0)
			if i >= 2 {
				advantage = float32(n%4) - 1.25
			}
			d.Logprobs, d.Advantages = append(d.Logprobs, -8), append(d.Advantages, advantage)
		}
		datums = append(datums, d)
	}
	return datums
}

// TestAveragedGradientsAreCompensated trains at a server that averages gradients: with the compensation the weights are
// those of one that sums them, to the rounding of float32; without it they are not.
func TestAveragedGradientsAreCompensated(t *testing.T) {
	t.Parallel()
	summed := trainAt(t, dialect.NameJSON, false)
	compensated := trainAt(t, dialect.NameSkyRL, true)
	averaged := trainAt(t, dialect.NameSkyRL, false)
	if got := furthest(summed, compensated); got > 1e-4 {
		t.Errorf("log-probabilities differ by %g from those of a server that sums", got)
	}
	if got := furthest(summed, averaged); got < 1e-2 {
		t.Errorf("without compensation log-probabilities differ by %g, so that the test shows nothing", got)
	}
}

// furthest returns the greatest difference.
func furthest(a, b []float64) float64 {
	most := 0.0
	for i := range a {
		most = max(most, math.Abs(a[i]-b[i]))
	}
	return most
}
