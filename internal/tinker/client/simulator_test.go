// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/simulatortest"
)

// simulated is a simulator behind a real socket, with a client that exchanges its key for a JWT, compresses bodies,
// and sends two datums per chunk.
type simulated struct {
	*client.Client
	session string
}

func simulate(t *testing.T) simulated {
	t.Helper()
	config := tinker.DefaultServerConfig()
	config.PJWTAuthEnabled, config.CompressForwardBackward, config.MaxChunkLen = true, true, 2
	_, url := simulatortest.Serve(t, tinkersim.Options{Config: &config, MetadataBytes: 64, PollPatience: 5 * time.Second})
	api, err := client.New(client.Config{BaseURL: url, APIKey: "tml-test", UserAgent: "test"})
	if err != nil {
		t.Fatal(err)
	}
	session, err := api.CreateSession(t.Context(), client.SessionRequest{Tags: []string{"test"}})
	if err != nil {
		t.Fatal(err)
	}
	return simulated{api, session}
}

func (s simulated) model(t *testing.T, seq int) *client.Model {
	t.Helper()
	lora := tinker.DefaultLora()
	lora.Rank, lora.Seed = 8, new(int64(7))
	model, err := s.CreateModel(t.Context(), tinker.CreateModelRequest{
		Session: s.session, ModelSeq: seq, BaseModel: tinkersim.ModelName, Lora: lora,
		UserMetadata: tinker.Metadata{"run": "r", "attempt": "2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return model
}

func wait[T any](t *testing.T, future *client.Future[T], err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	value, err := future.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// trainingData returns datums of different lengths, in which each token predicts the next.
func trainingData() []tinker.Datum {
	var data []tinker.Datum
	for n := range 5 {
		tokens := []int32{1, 2, 3, 4, 5, 6}[:n+2]
		targets := make([]int64, len(tokens))
		weights := make([]float32, len(tokens))
		for i, token := range tokens {
			targets[i], weights[i] = int64(token)+1, 1
		}
		data = append(data, tinker.Datum{
			ModelInput: tinker.Text(tokens),
			LossFnInputs: map[string]tinker.Tensor{tinker.InputTargetTokens: tinker.Ints(targets),
				tinker.InputWeights: tinker.Floats(weights)},
		})
	}
	return data
}

var crossEntropy = tinker.Loss{Name: tinker.LossCrossEntropy}

// train takes a step and returns its result.
func train(t *testing.T, m *client.Model) tinker.ForwardBackwardResult {
	t.Helper()
	forward, err := m.ForwardBackward(t.Context(), trainingData(), crossEntropy)
	if err != nil {
		t.Fatal(err)
	}
	step, err := m.OptimStep(t.Context(), tinker.AdamParams{LearningRate: 1e-2, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8})
	result := wait(t, forward, nil)
	wait(t, step, err)
	return result
}

// wantMetadata compares the metadata of a model's checkpoints, by their type.
func wantMetadata(t *testing.T, s simulated, model string, want map[string]tinker.Metadata) {
	t.Helper()
	found, err := s.RunCheckpoints(t.Context(), model)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]tinker.Metadata{}
	for _, one := range found {
		got[one.CheckpointType] = one.UserMetadata
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metadata of checkpoints (-want +got):\n%s", diff)
	}
}

func TestSimulatorTrains(t *testing.T) {
	s := simulate(t)
	ctx := t.Context()
	capabilities, err := s.Capabilities(ctx)
	if err != nil || !slices.ContainsFunc(capabilities.SupportedModels,
		func(m tinker.SupportedModel) bool { return m.ModelName == tinkersim.ModelName }) {
		t.Errorf("Capabilities = %v, %v", capabilities, err)
	}
	m := s.model(t, 0)
	first := train(t, m)
	forward, err := m.Forward(ctx, trainingData(), crossEntropy)
	second := wait(t, forward, err)
	if len(first.LossFnOutputs) != 5 || !(second.Metrics["loss:sum"] < first.Metrics["loss:sum"]) {
		t.Errorf("%d outputs, losses %v and %v", len(first.LossFnOutputs), first.Metrics, second.Metrics)
	}
	for i, output := range first.LossFnOutputs {
		if got := output[tinker.InputLogprobs]; len(got.Float) != i+2 {
			t.Errorf("datum %d has log-probabilities %v", i, got)
		}
	}
	saving, err := m.SaveState(ctx, client.SaveRequest{Name: "one"})
	state := wait(t, saving, err).Path
	if want := (tinker.Path{Run: m.ID(), Kind: tinker.KindState, Name: "one"}).String(); state != want {
		t.Errorf("saved at %s, want %s", state, want)
	}
	again, err := m.SaveState(ctx, client.SaveRequest{Name: "one"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Wait(ctx); client.CategoryFrom(err) != tinker.CategoryExists {
		t.Errorf("a name in use: %v", err)
	}
	replaced, err := m.SaveState(ctx, client.SaveRequest{Name: "one", Overwrite: true,
		UserMetadata: tinker.Metadata{"step": "1"}})
	wait(t, replaced, err)
	sampler, err := m.SaveSampler(ctx, client.SaveRequest{Name: "one", UserMetadata: tinker.Metadata{"step": "2"}})
	wait(t, sampler, err)
	wantMetadata(t, s, m.ID(), map[string]tinker.Metadata{tinker.CheckpointTraining: {"step": "1"},
		tinker.CheckpointSampler: {"step": "2"}})
	third := train(t, m)

	info, err := s.WeightsInfo(ctx, state)
	if err != nil || info.BaseModel != tinkersim.ModelName || *info.LoraRank != 8 {
		t.Errorf("WeightsInfo = %v, %v", info, err)
	}
	resumed := s.model(t, 1)
	loading, err := resumed.LoadState(ctx, state, true)
	wait(t, loading, err)
	if diff := cmp.Diff(third, train(t, resumed)); diff != "" {
		t.Errorf("a resumed step differs (-want +got):\n%s", diff)
	}
	if err := s.UnloadModel(ctx, resumed.ID()); err != nil && !errors.Is(err, client.ErrUnsupported) {
		t.Errorf("UnloadModel: %v", err)
	}
	if _, err := resumed.OptimStep(ctx, tinker.DefaultAdam()); client.CategoryFrom(err) != tinker.CategoryNotFound {
		t.Errorf("a step of an unloaded model: %v", err)
	}
}

func TestSimulatorSamples(t *testing.T) {
	s := simulate(t)
	ctx := t.Context()
	if err := s.Heartbeat(ctx, s.session); err != nil {
		t.Error(err)
	}
	if err := s.Heartbeat(ctx, "nobody"); client.CategoryFrom(err) != tinker.CategoryNotFound {
		t.Errorf("an unknown session: %v", err)
	}
	m := s.model(t, 0)
	saving, err := m.SaveSampler(ctx, client.SaveRequest{Name: "v0", TTLSeconds: 3600})
	sampler := wait(t, saving, err).Path
	session, err := s.CreateSamplingSession(ctx, s.session, 1<<47, sampler, "")
	if err != nil {
		t.Fatal(err)
	}
	draw := func(seq int64) tinker.SampleResult {
		params := tinker.DefaultSampling()
		params.MaxTokens, params.Seed = new(12), new(int64(5))
		result, err := s.Sample(ctx, tinker.SampleRequest{
			NumSamples: 2, Prompt: tinker.Text([]int32{49, 43, 50, 61}), SamplingParams: params, SamplingSession: session,
			SeqID:          &seq,
			PromptLogprobs: true, TopkPromptLogprobs: 3,
		})
		if err != nil {
			t.Error(err)
		}
		return result
	}
	want := draw(1 << 62)
	if len(want.Sequences) != 2 || len(want.PromptLogprobs) != 4 || len(want.TopkPromptLogprobs) != 4 ||
		want.TopkPromptLogprobs[0] != nil {
		t.Fatalf("samples %+v", want)
	}
	var wg sync.WaitGroup
	for seq := range int64(20) {
		wg.Go(func() {
			if diff := cmp.Diff(want.Sequences, draw(seq).Sequences); diff != "" {
				t.Errorf("the same seed drew different tokens (-want +got):\n%s", diff)
			}
		})
	}
	wg.Wait()
	logprobs, err := s.ComputeLogprobs(ctx, session, 99, []int32{49, 43, 50, 61})
	if err != nil || !math.IsNaN(float64(logprobs[0])) || !cmp.Equal(logprobs[1:], want.PromptLogprobs[1:]) {
		t.Errorf("ComputeLogprobs = %v, %v, want %v", logprobs, err, want.PromptLogprobs)
	}
	if _, err := s.ComputeLogprobs(ctx, "nobody", 1, []int32{1}); client.CategoryFrom(err) != tinker.CategoryNotFound {
		t.Errorf("an unknown sampling session: %v", err)
	}
}

func TestSimulatorListings(t *testing.T) {
	s := simulate(t)
	ctx := t.Context()
	m := s.model(t, 3)
	var paths []string
	for _, name := range []string{"a", "b", "c"} {
		saving, err := m.SaveState(ctx, client.SaveRequest{Name: name})
		paths = append(paths, wait(t, saving, err).Path)
	}
	listed := func() []string {
		var out []string
		for checkpoint, err := range s.Checkpoints(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, checkpoint.TinkerPath)
		}
		slices.Sort(out)
		return out
	}
	if diff := cmp.Diff(paths, listed()); diff != "" {
		t.Errorf("checkpoints (-want +got):\n%s", diff)
	}
	for run, err := range s.TrainingRuns(ctx) {
		if err != nil || run.TrainingRunID != m.ID() || run.UserMetadata["attempt"] != "2" {
			t.Errorf("run %+v, %v", run, err)
		}
	}
	if err := s.SetTTL(ctx, paths[0], new(int64(3600))); err != nil {
		t.Error(err)
	}
	checkpoints, err := s.RunCheckpoints(ctx, m.ID())
	if err != nil || len(checkpoints) != 3 {
		t.Fatalf("RunCheckpoints = %v, %v", checkpoints, err)
	}
	for _, checkpoint := range checkpoints {
		if (checkpoint.ExpiresAt != nil) != (checkpoint.TinkerPath == paths[0]) {
			t.Errorf("checkpoint %+v", checkpoint)
		}
	}
	if err := s.DeleteCheckpoint(ctx, paths[1]); err != nil {
		t.Error(err)
	}
	if err := s.DeleteCheckpoint(ctx, paths[1]); client.CategoryFrom(err) != tinker.CategoryNotFound {
		t.Errorf("a deleted checkpoint: %v", err)
	}
	if diff := cmp.Diff([]string{paths[0], paths[2]}, listed()); diff != "" {
		t.Errorf("checkpoints after a deletion (-want +got):\n%s", diff)
	}
}
