// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"archive/tar"
	"context"
	"encoding/binary"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/dialect"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/simulatortest"
	"github.com/tinker-operator/tinker-operator/test/archive"
)

// trainAt takes steps on sequences of different lengths, and returns the trained weights. The epsilon is so great that
// a step is proportional to the gradient.
func trainAt(t *testing.T, name string, compensated bool, alg algorithm.Algorithm, steps int) []float32 {
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
		API: api, Session: func(context.Context) (string, error) { return session, nil },
		Run: contract.RunReference{UID: "uid"}, Now: time.Now,
		Base: contract.Model{Name: tinkersim.ModelName, LoraRank: 4, TrainAttention: true, TrainMLP: true, TrainUnembed: true,
			Seed: 7},
	}
	factory.Averages.Store(compensated)
	model, err := factory.Fresh(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range steps {
		training, err := model.Train(t.Context(), trainee.Step{
			Datums: unequalDatums(), Substeps: int(alg.Substeps), Losses: trainee.LossesOf(alg),
			Adam: tinker.AdamParams{LearningRate: 1e3, Beta1: 0.9, Beta2: 0.95, Eps: 1e8},
		})
		if err == nil {
			_, err = training.Wait(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	save, err := model.SaveState(t.Context(), rl.CheckpointName{Step: int64(steps)})
	if err != nil {
		t.Fatal(err)
	}
	path, err := save.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return weightsIn(t, url, path)
}

// weightsIn returns the weights of the adapter in a checkpoint.
func weightsIn(t *testing.T, url, path string) []float32 {
	t.Helper()
	body := archive.Open(t, url, apiKey, path)
	defer body.Close()
	for files := tar.NewReader(body); ; {
		header, err := files.Next()
		if err != nil {
			t.Fatalf("no adapter in the archive of %s: %v", path, err)
		}
		if !strings.HasSuffix(header.Name, ".safetensors") {
			continue
		}
		data, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		// The file has the length of its header, the header, and then the numbers.
		numbers := data[8+binary.LittleEndian.Uint64(data):]
		weights := make([]float32, len(numbers)/4)
		for i := range weights {
			weights[i] = math.Float32frombits(binary.LittleEndian.Uint32(numbers[4*i:]))
		}
		return weights
	}
}

// unequalDatums are sequences of different lengths, each with a prompt without advantages. Two of the five have the
// role of a judge.
func unequalDatums() []rl.Datum {
	var datums []rl.Datum
	for n := 3; n < 12; n += 2 {
		d := rl.Datum{Slot: int64(n)}
		if n%4 == 1 {
			d.Role = "judge"
		}
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

// TestAveragedGradientsAreCompensated trains at a server that averages gradients: with the compensation the weights
// equal the weights at a server that sums them, to the rounding of float32; without it they do not.
func TestAveragedGradientsAreCompensated(t *testing.T) {
	t.Parallel()
	cases := map[string]algorithm.Algorithm{
		"one loss": {Loss: algorithm.Loss{Name: algorithm.LossImportanceSampling}, Substeps: 1},
		"two losses and two substeps": {
			Loss: algorithm.Loss{Name: algorithm.LossImportanceSampling}, Substeps: 2,
			Roles: []algorithm.Role{{Name: "judge",
				Loss: &algorithm.Loss{Name: algorithm.LossCISPO, ClipLow: new(0.0), ClipHigh: new(4.0)}}},
		},
	}
	for name, alg := range cases {
		t.Run(name, func(t *testing.T) {
			// Each further step amplifies the rounding errors of the step before.
			const steps = 2
			initial := trainAt(t, dialect.NameJSON, false, alg, 0)
			summed := trainAt(t, dialect.NameJSON, false, alg, steps)
			compensated := trainAt(t, dialect.NameSkyRL, true, alg, steps)
			averaged := trainAt(t, dialect.NameSkyRL, false, alg, steps)
			change := furthest(initial, summed)
			if got, bound := furthest(summed, compensated), 64*epsilon32*change; got > bound {
				t.Errorf("weights differ by %g from a server's that sums, want at most %g, by rounding", got, bound)
			}
			if got := furthest(summed, averaged); got < change/10 {
				t.Errorf("without compensation weights differ by %g of a change of %g, so that the test shows nothing", got, change)
			}
		})
	}
}

// epsilon32 is the distance from 1 to the next greater float32.
const epsilon32 = 1.0 / (1 << 23)

// TestRunAtAveragingServer trains a step of a run at a server that averages gradients. The weights equal the weights
// of a run at a server that sums them, unless the run believes that its server sums them too.
func TestRunAtAveragingServer(t *testing.T) {
	t.Parallel()
	found, _ := skyRLBaseline(t)
	run := func(name string, gradients func(known *contract.Capabilities) *[]string) []float32 {
		w := newFixtureOn(t, tinkersim.Options{SessionTimeout: time.Minute, Dialect: name}, func(f *contract.RunFile) {
			f.Fixed.Algorithm.Steps = 1
			f.Fixed.Algorithm.Optimizer.LearningRate, f.Fixed.Algorithm.Optimizer.Epsilon = 1e3, 1e8
		})
		known := *found
		known.Supported = append(slices.Clone(found.Supported), string(capability.Adam("eps")))
		known.Ignored = slices.DeleteFunc(slices.Clone(found.Ignored),
			func(f string) bool { return f == string(capability.GradientSum) })
		list := gradients(&known)
		*list = append(*list, string(capability.GradientSum))
		w.knowing(&known).startWorker("w0", behavior{})
		verdict := w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
		return weightsIn(t, w.url, verdict.Progress.Checkpoints[0].State)
	}
	supported := func(known *contract.Capabilities) *[]string { return &known.Supported }
	ignored := func(known *contract.Capabilities) *[]string { return &known.Ignored }
	summed := run(dialect.NameJSON, supported)
	uncompensated := furthest(summed, run(dialect.NameSkyRL, supported))
	if uncompensated < 1e-4 {
		t.Errorf("without compensation weights differ by %g, so that the test shows nothing", uncompensated)
	}
	if got, bound := furthest(summed, run(dialect.NameSkyRL, ignored)), 64*epsilon32*uncompensated; got > bound {
		t.Errorf("weights differ by %g from a server's that sums, want at most %g, by rounding", got, bound)
	}
}

// furthest returns the greatest difference between corresponding weights.
func furthest(a, b []float32) float64 {
	most := 0.0
	for i := range a {
		most = max(most, math.Abs(float64(a[i])-float64(b[i])))
	}
	return most
}
