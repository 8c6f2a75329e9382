// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package state holds the state of a simulated server between two restarts: sessions, models, sampling sessions and
// futures, and the checkpoints that it found on disk. It knows nothing of HTTP. Its methods take and return the bodies
// of the API.
//
// Each part has a type of its own: Sessions, Models, Samplers and Checkpoints. Locks are taken in that
// order: a method of Sessions may call into Models and Samplers with its lock held, never the reverse.
//
// A goroutine for each model carries out its operations, in the order of package opqueue. The engine of package
// sampling draws samples. An error in an operation is the operation's result. A request that cannot be
// accepted at all gets an Error.
package state

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/future"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/latency"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/sampling"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/stats"
)

// retention is the time for which results are kept: a client may lose one and ask again minutes later.
var retention = future.Retention{Delivered: 5 * time.Minute, Undelivered: 30 * time.Minute}

// State is everything that the server forgets when it restarts, and the checkpoints that it found on
// disk. It is safe for concurrent use.
type State struct {
	Sessions    *Sessions
	Models      *Models
	Samplers    *Samplers
	Checkpoints *Checkpoints

	shared *shared
}

// Options are the settings of a State. All of them must be set, except where a comment says otherwise.
type Options struct {
	// Dir is the directory of the checkpoints.
	Dir string
	// BaseModels are the names of model.Base(), CountdownModels the names of model.CountdownBase(), and SumsModels the
	// names of model.SumsBase(), which may be empty.
	BaseModels, CountdownModels, SumsModels []string
	// Vocabularies are further base models by name: the same network with the tokens of the vocabulary. It may be empty.
	Vocabularies map[string]model.Vocabulary
	// Rules are frozen models by name, which reply by rule to the text of a prompt. It may be empty.
	Rules map[string]func(prompt string) string
	// ForcedSamples forces samples in tests. It may be nil.
	ForcedSamples *sampling.ForcedSamples
	// Log receives warnings about the directory.
	Log *slog.Logger
	// Clock returns the current time.
	Clock func() time.Time
	// Random is the source of ids.
	Random io.Reader
	// GapPatience is the time for which chunks wait for a missing number.
	GapPatience time.Duration
	// SessionTimeout is the time without a heartbeat or a request after which a session ends.
	SessionTimeout time.Duration
	// TrainingSlots is the number of models that are trained at the same time.
	TrainingSlots int
	// SampleNoise is the standard deviation of noise in the logits of samples. It may be zero.
	SampleNoise float64
	// AverageGradients averages the gradients of sequences instead of summing them.
	AverageGradients bool
	// KeepSamplers keeps the matrices of sampler weights, for LoadSampler.
	KeepSamplers bool
	// Latency simulates the times of another server's operations. It may be nil.
	Latency *latency.Simulator
	// SampleRows are the Rows of sampling.Config. They may be zero.
	SampleRows int
}

// shared has the common fields of the parts of a State. Its fields do not change after New, and each of them is safe
// for concurrent use.
type shared struct {
	options    Options
	bases      baseModels
	faults     *fault.Set
	counters   *stats.Counters
	store      *checkpoint.Store
	futures    *future.Table
	engine     *sampling.Engine
	slots      chan struct{} // holds a token for each model that is being trained
	background *background
}

// New opens the checkpoints and starts the decoders, which run until Close.
func New(options Options, faults *fault.Set, counters *stats.Counters) (*State, error) {
	store, err := checkpoint.Open(options.Dir, options.Clock, options.Log)
	if err != nil {
		return nil, err
	}
	prefix := make([]byte, 6)
	if _, err := io.ReadFull(options.Random, prefix); err != nil {
		return nil, errors.Join(fmt.Errorf("drawing the prefix of request ids: %w", err), store.Close())
	}
	sh := &shared{
		options:    options,
		bases:      newBaseModels(options),
		faults:     faults,
		counters:   counters,
		store:      store,
		futures:    future.NewTable("req-"+hex.EncodeToString(prefix), retention, options.Clock),
		slots:      make(chan struct{}, options.TrainingSlots),
		background: newBackground(),
	}
	sh.engine = sampling.New(sampling.Config{
		Rows: options.SampleRows,
		Load: sh.loadWeights,
		Now:  options.Clock,
	})
	sessions := newSessions(options, counters)
	samplers := newSamplers(sh, sessions)
	s := &State{
		Sessions:    sessions,
		Models:      newModels(sh, sessions, samplers),
		Samplers:    samplers,
		Checkpoints: &Checkpoints{store: store},
		shared:      sh,
	}
	return s, sh.background.start(s.removeExpired)
}

// removeExpired removes idle sessions and expired results until the State is closed, even if no request arrives.
func (s *State) removeExpired() {
	ticker := time.NewTicker(min(s.shared.options.SessionTimeout, time.Minute))
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.Sessions.endIdle()
			s.shared.futures.Sweep()
		case <-s.shared.background.ctx.Done():
			return
		}
	}
}

// Close stops all work, waits until it has stopped, and releases the directory. Unfinished work leaves nothing behind.
func (s *State) Close() {
	s.shared.background.close()
	s.shared.engine.Close()
	s.shared.counters.CountSampling(s.shared.engine.Stats())
	s.shared.futures.Clear()
	_ = s.shared.store.Close() // if that fails, the next State reports that the directory is in use
}

// IsClosed reports whether Close was called.
func (s *State) IsClosed() bool { return s.shared.background.isClosed() }

// Stats returns the counters, including the engine's work that Close has not counted yet.
func (s *State) Stats() stats.Stats {
	if s.shared.background.isClosed() {
		return s.shared.counters.Read(sampling.Stats{})
	}
	return s.shared.counters.Read(s.shared.engine.Stats())
}

// Capabilities returns the names of the base models.
func (s *State) Capabilities() tinker.ServerCapabilities { return s.shared.bases.capabilities() }

// HasBaseModel reports whether the server has a base model of that name.
func (s *State) HasBaseModel(name string) bool { return s.shared.bases.has(name) }

// Cancel abandons a request for samples that has no result yet. Clients may repeat it.
func (s *State) Cancel(id string) error { return s.shared.futures.Cancel(id) }

// Done returns a channel that is closed once a future has a result or is lost; nil for one that does not exist.
func (s *State) Done(id string) <-chan struct{} {
	f, err := s.shared.futures.Lookup(id)
	if err != nil {
		return nil
	}
	return f.Done()
}

// Await returns the result of a future if it exists or arrives within the given time. Otherwise ok is false and status
// has the reason of the operation's wait. It returns future.ErrUnknown, future.ErrLost, ErrClosed or the context's
// error.
func (s *State) Await(ctx context.Context, id string,
	patience time.Duration) (result future.Result, status future.QueueStatus, ok bool, err error) {
	f, err := s.shared.futures.Lookup(id)
	if s.shared.background.isClosed() {
		err = ErrClosed
	}
	if err != nil {
		return future.Result{}, future.QueueStatus{}, false, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(s.shared.background.ctx, cancel)
	defer stop()
	result, status, ok, err = f.Wait(ctx, patience)
	if err != nil && s.shared.background.isClosed() {
		err = ErrClosed
	}
	return result, status, ok, err
}
