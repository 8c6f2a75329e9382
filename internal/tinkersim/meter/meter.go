// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package meter counts what a simulated server does: how long it worked, at what, and which calls
// arrived. It decides nothing.
package meter

import (
	"maps"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/sampling"
)

// Busy is what a server has done since it was made, over all restarts. Seconds of concurrent work
// are added up, so they may pass faster than the clock.
type Busy struct {
	SamplingSeconds float64 `json:"samplingSeconds"`
	// TrainingSeconds are those of forward, forward_backward and optim_step.
	TrainingSeconds float64 `json:"trainingSeconds"`
	// SavingSeconds are those of saves and loads.
	SavingSeconds float64 `json:"savingSeconds"`

	SampleBatches int64 `json:"sampleBatches"`
	SampledRows   int64 `json:"sampledRows"`
	SampledTokens int64 `json:"sampledTokens"`
	TrainedTokens int64 `json:"trainedTokens"`

	// Operations counts what was carried out, each (model, seq) once.
	Operations map[string]int64 `json:"operations"`
	// Calls counts what arrived, by endpoint, repetitions and refusals included.
	Calls map[string]int64 `json:"calls"`
}

// Work says which seconds an operation counts for.
type Work int

// The kinds of work.
const (
	Training Work = iota
	Saving
)

// Meter counts. It is safe for concurrent use.
type Meter struct {
	mu   sync.Mutex
	busy Busy
}

// New returns a meter at zero.
func New() *Meter {
	return &Meter{busy: Busy{Operations: map[string]int64{}, Calls: map[string]int64{}}}
}

// Called counts a call that arrived at an endpoint.
func (m *Meter) Called(op string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy.Calls[op]++
}

// CarriedOut counts an operation that took so long.
func (m *Meter) CarriedOut(op string, kind Work, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy.Operations[op]++
	if kind == Training {
		m.busy.TrainingSeconds += took.Seconds()
		return
	}
	m.busy.SavingSeconds += took.Seconds()
}

// Trained counts tokens of a forward pass.
func (m *Meter) Trained(tokens int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy.TrainedTokens += int64(tokens)
}

// Sampled adds what an engine has done that is no more.
func (m *Meter) Sampled(stats sampling.Stats) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy.add(stats)
}

// Read returns the counts, those of the engine at work included.
func (m *Meter) Read(current sampling.Stats) Busy {
	m.mu.Lock()
	defer m.mu.Unlock()
	busy := m.busy
	busy.Operations = maps.Clone(busy.Operations)
	busy.Calls = maps.Clone(busy.Calls)
	busy.add(current)
	return busy
}

func (b *Busy) add(stats sampling.Stats) {
	b.SamplingSeconds += stats.Busy.Seconds()
	b.SampleBatches += stats.Batches
	b.SampledRows += stats.Rows
	b.SampledTokens += stats.Tokens
}
