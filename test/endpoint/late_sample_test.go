// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
)

// lateSampler samples versions of models late.
type lateSampler struct {
	t       *testing.T
	api     *client.Client
	session string
	// sessions and models count the sampling sessions and the models.
	sessions int64
	models   int
}

// checkLateSamples checks the two facts that the learner relies on at SkyRL: a sample of older weights changes the
// model that trains, and a sample of the weights of an unloaded model changes no other model, though the next model has
// its adapter.
func checkLateSamples(t *testing.T, url string, inJSON bool) {
	t.Helper()
	api, err := client.New(client.Config{BaseURL: url, APIKey: "tml-skyrl"})
	if err != nil {
		t.Fatal(err)
	}
	if inJSON {
		api.UseJSON()
	}
	session, err := api.CreateSession(t.Context(), client.SessionRequest{})
	if err != nil {
		t.Fatal(err)
	}
	s := &lateSampler{t: t, api: api, session: session}
	model := s.create()
	first, state := s.save(model.SaveSampler, "v0"), s.save(model.SaveState, "s0")
	initial := s.logprobs(model)
	s.sample(first)
	s.step(model)
	trained := s.logprobs(model)
	if cmp.Equal(initial, trained, equalWeights) {
		t.Fatal("the step changes nothing")
	}
	s.sample(s.save(model.SaveSampler, "v1"))
	s.expect("after a sample of the newest weights", s.logprobs(model), trained)
	s.sample(first)
	s.expect("after a late sample", s.logprobs(model), initial)
	if err := api.UnloadModel(t.Context(), model.ID()); err != nil {
		t.Fatal(err)
	}
	next := s.create()
	wait(t, func(ctx context.Context) (*client.Future[tinker.LoadResult], error) {
		return next.LoadState(ctx, state, true)
	})
	s.step(next)
	s.expect("the step of the next model", s.logprobs(next), trained)
	if err := s.trySample(first); client.CategoryFrom(err) != tinker.CategoryNotFound {
		t.Errorf("a sample of a model that is unloaded: %v, want that it is not loaded", err)
	}
	s.expect("the next model after that", s.logprobs(next), trained)
}

// equalWeights permits the small differences that log-probabilities at equal weights may have.
var equalWeights = cmpopts.EquateApprox(0, 1e-4)

func (s *lateSampler) expect(when string, got, want []float32) {
	s.t.Helper()
	if diff := cmp.Diff(want, got, equalWeights); diff != "" {
		s.t.Errorf("log-probabilities of the model that trains, %s (-want +got):\n%s", when, diff)
	}
}

// wait waits for the result of an operation.
func wait[T any](t *testing.T, submit func(ctx context.Context) (*client.Future[T], error)) T {
	t.Helper()
	future, err := submit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	result, err := future.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func (s *lateSampler) create() *client.Model {
	s.t.Helper()
	s.models++
	model, err := s.api.CreateModel(s.t.Context(), tinker.CreateModelRequest{
		Session: s.session, ModelSeq: s.models, BaseModel: tinkersim.ModelName,
		Lora: tinker.LoraConfig{Rank: 4, TrainAttn: true, TrainMLP: true, TrainUnembed: true},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return model
}

func (s *lateSampler) save(
	save func(ctx context.Context, r client.SaveRequest) (*client.Future[tinker.SaveResult], error), name string,
) string {
	s.t.Helper()
	return wait(s.t, func(ctx context.Context) (*client.Future[tinker.SaveResult], error) {
		return save(ctx, client.SaveRequest{Name: name})
	}).Path
}

// datum is one token to predict after another.
func datum() []tinker.Datum {
	return []tinker.Datum{{
		ModelInput: tinker.Text([]int32{49}),
		LossFnInputs: map[string]tinker.Tensor{
			tinker.InputTargetTokens: tinker.Ints([]int64{50}), tinker.InputWeights: tinker.Floats([]float32{1}),
		},
	}}
}

func (s *lateSampler) logprobs(model *client.Model) []float32 {
	s.t.Helper()
	result := wait(s.t, func(ctx context.Context) (*client.Future[tinker.ForwardBackwardResult], error) {
		return model.Forward(ctx, datum(), tinker.Loss{Name: tinker.LossCrossEntropy})
	})
	logprobs, err := result.LossFnOutputs[0][tinker.InputLogprobs].Dense()
	if err != nil {
		s.t.Fatal(err)
	}
	return logprobs.Float
}

func (s *lateSampler) step(model *client.Model) {
	s.t.Helper()
	wait(s.t, func(ctx context.Context) (*client.Future[tinker.ForwardBackwardResult], error) {
		return model.ForwardBackward(ctx, datum(), tinker.Loss{Name: tinker.LossCrossEntropy})
	})
	adam := tinker.DefaultAdam()
	adam.LearningRate = 0.01
	wait(s.t, func(ctx context.Context) (*client.Future[tinker.OptimStepResult], error) {
		return model.OptimStep(ctx, adam)
	})
}

func (s *lateSampler) sample(path string) {
	s.t.Helper()
	if err := s.trySample(path); err != nil {
		s.t.Fatal(err)
	}
}

func (s *lateSampler) trySample(path string) error {
	s.sessions++
	session, err := s.api.CreateSamplingSession(s.t.Context(), s.session, s.sessions, path, "")
	if err != nil {
		return err
	}
	params := tinker.DefaultSampling()
	params.MaxTokens, params.Seed = new(1), new(int64(1))
	_, err = s.api.Sample(s.t.Context(), tinker.SampleRequest{
		NumSamples: 1, Prompt: tinker.Text([]int32{49}), SamplingParams: params, SamplingSession: session, SeqID: &s.sessions,
	})
	return err
}
