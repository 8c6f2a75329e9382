// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/future"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/stats"
)

const baseModel = "base/model"

// clock is a clock that the test advances.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// fixture is a State with a clock and faults of the test.
type fixture struct {
	*State
	t      *testing.T
	clock  *clock
	faults *fault.Set
}

// newFixture returns a State whose sessions time out after 10 minutes.
func newFixture(t *testing.T, rules ...fault.Rule) *fixture {
	t.Helper()
	c := &clock{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	faults, err := fault.NewSet(rules, c.Now)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{
		Dir:        t.TempDir(),
		BaseModels: []string{baseModel, "an/alias"},

		CountdownModels: []string{countdownModel},
		Log:             slog.New(slog.DiscardHandler),
		Clock:           c.Now,
		Random:          rand.NewChaCha8([32]byte{1}),
		GapPatience:     time.Hour,
		SessionTimeout:  10 * time.Minute,
		TrainingSlots:   2,
	}, faults, stats.NewCounters())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return &fixture{State: s, t: t, clock: c, faults: faults}
}

func (f *fixture) session() string {
	f.t.Helper()
	created, err := f.Sessions.Create(tinker.CreateSessionRequest{})
	if err != nil {
		f.t.Fatal(err)
	}
	return created.Session
}

func modelRequest(session string, seq int) tinker.CreateModelRequest {
	return tinker.CreateModelRequest{
		Session: session, ModelSeq: seq, BaseModel: baseModel,
		Lora: tinker.LoraConfig{Rank: 2, Seed: new(int64(1)), TrainUnembed: true},
	}
}

// model creates a model and waits until it exists.
func (f *fixture) model(session string, seq int) string {
	f.t.Helper()
	created, err := f.Models.Create(modelRequest(session, seq))
	if failure := f.failure(created, err); failure.Error != "" {
		f.t.Fatal(failure.Error)
	}
	return created.ModelID
}

// await waits for the result of a submitted operation.
func (f *fixture) await(submitted tinker.FutureResponse, err error) future.Result {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
	result, _, ok, err := f.Await(f.t.Context(), submitted.RequestID, time.Minute)
	if err != nil || !ok {
		f.t.Fatalf("Await(%s): resolved %v, %v", submitted.RequestID, ok, err)
	}
	return result
}

// failure waits for the result of a submitted operation and returns its failure, which is zero if it succeeded.
func (f *fixture) failure(submitted tinker.FutureResponse, err error) tinker.FailedResult {
	f.t.Helper()
	var failure tinker.FailedResult
	if result := f.await(submitted, err); result.Kind == KindJSON {
		if err := json.Unmarshal(result.Body, &failure); err != nil {
			f.t.Fatal(err)
		}
	}
	return failure
}

// save saves the training state of a model and returns its path.
func (f *fixture) save(model, name string, seq int64, ttl *int64) string {
	f.t.Helper()
	submitted, err := f.Models.SaveWeights(tinker.SaveWeightsRequest{ModelID: model, Path: name, SeqID: seq,
		TTLSeconds: ttl})
	if failure := f.failure(submitted, err); failure.Error != "" {
		f.t.Fatal(failure.Error)
	}
	return "tinker://" + model + "/weights/" + name
}

// saveSampler saves sampler weights of a model and returns their path.
func (f *fixture) saveSampler(model, name string, seq int64) string {
	f.t.Helper()
	submitted, err := f.Models.SaveSampler(tinker.SaveSamplerRequest{ModelID: model, Path: name, SeqID: seq})
	if failure := f.failure(submitted, err); failure.Error != "" {
		f.t.Fatal(failure.Error)
	}
	return "tinker://" + model + "/sampler_weights/" + name
}

func parsePath(t *testing.T, text string) tinker.Path {
	t.Helper()
	path, err := tinker.ParsePath(text)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// category classifies an error as a client of the server sees it; "" means no error.
func category(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return string(e.Category)
	}
	switch {
	case err == nil:
		return ""
	case errors.Is(err, checkpoint.ErrNotFound):
		return string(tinker.CategoryNotFound)
	}
	return err.Error()
}
