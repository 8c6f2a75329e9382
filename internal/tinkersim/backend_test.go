// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/simulatortest"
)

// backend is a server with helpers that call it.
type backend struct {
	t   *testing.T
	sim *tinkersim.Server
	url string
	dir string
}

// start serves a simulator on a loopback port until the test ends.
func start(t *testing.T, options tinkersim.Options) *backend {
	t.Helper()
	if options.Dir == "" {
		options.Dir = t.TempDir()
	}
	if options.PollPatience == 0 {
		options.PollPatience = 5 * time.Second
	}
	options.Admin = true
	sim, url := simulatortest.Serve(t, options)
	return &backend{t: t, sim: sim, url: url, dir: options.Dir}
}

// client returns a client of the server.
func (b *backend) client() *client.Client {
	b.t.Helper()
	api, err := client.New(client.Config{BaseURL: b.url, APIKey: "tml-test", UserAgent: "test", HTTP: &http.Client{}})
	if err != nil {
		b.t.Fatal(err)
	}
	return api
}

// session makes a session.
func (b *backend) session(c *client.Client) string {
	b.t.Helper()
	session, err := c.CreateSession(b.t.Context(), client.SessionRequest{})
	if err != nil {
		b.t.Fatal(err)
	}
	return session
}

var lora = tinker.LoraConfig{Rank: 8, Seed: new(int64(1)), TrainUnembed: true, TrainMLP: true, TrainAttn: true}

// model makes a model.
func (b *backend) model(c *client.Client, session string, seq int) *client.Model {
	b.t.Helper()
	m, err := c.CreateModel(b.t.Context(), tinker.CreateModelRequest{
		Session: session, ModelSeq: seq, BaseModel: tinkersim.ModelName, Lora: lora,
		UserMetadata: tinker.Metadata{"run": "abc", "attempt": "1"},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return m
}

// done waits for a future.
func done[T any](t *testing.T, submitted *client.Future[T], err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	result, err := submitted.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// text returns the tokens of a text, which are its bytes.
func text(s string) []int32 {
	tokens := make([]int32, len(s))
	for i := range s {
		tokens[i] = int32(s[i])
	}
	return tokens
}

// datum returns a datum that trains on a text: each token predicts the next.
func datum(s string) tinker.Datum {
	tokens := text(s)
	targets := make([]int64, len(tokens)-1)
	weights := make([]float32, len(tokens)-1)
	for i := range targets {
		targets[i], weights[i] = int64(tokens[i+1]), 1
	}
	return tinker.Datum{
		ModelInput: tinker.Text(tokens[:len(tokens)-1]),
		LossFnInputs: map[string]tinker.Tensor{tinker.InputTargetTokens: tinker.Ints(targets),
			tinker.InputWeights: tinker.Floats(weights)},
	}
}

var crossEntropy = tinker.Loss{Name: "cross_entropy"}

var adam = tinker.AdamParams{LearningRate: 1e-2, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}

// step makes one training step and returns the loss before it.
func step(t *testing.T, m *client.Model, data ...tinker.Datum) float64 {
	t.Helper()
	forward, err := m.ForwardBackward(t.Context(), data, crossEntropy)
	if err != nil {
		t.Fatal(err)
	}
	optim, err := m.OptimStep(t.Context(), adam)
	loss := done(t, forward, nil).Metrics["loss:sum"]
	done(t, optim, err)
	return loss
}
