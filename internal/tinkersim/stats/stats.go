// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package stats counts the work of a server.
package stats

import (
	"maps"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/sampling"
)

// Stats are the counters of a server since it was created, over all restarts. Seconds of concurrent work are added up,
// so they may pass faster than the clock.
type Stats struct {
	SamplingSeconds float64 `json:"samplingSeconds"`
	// TrainingSeconds counts forward, forward_backward and optim_step.
	TrainingSeconds float64 `json:"trainingSeconds"`
	// SavingSeconds counts saves and loads, and the creation of models.
	SavingSeconds float64 `json:"savingSeconds"`

	SampleBatches int64 `json:"sampleBatches"`
	SampledRows   int64 `json:"sampledRows"`
	SampledTokens int64 `json:"sampledTokens"`
	TrainedTokens int64 `json:"trainedTokens"`

	// Billed has the usage that a service would bill: each executed request once, by its session or model and its number.
	Billed Billed `json:"billed"`

	// Operations counts the operations that succeeded by their type, each (model, seq) once.
	Operations map[string]int64 `json:"operations"`
	// Calls counts the requests that arrived by endpoint, including repetitions and refused ones.
	Calls map[string]int64 `json:"calls"`
}

// Billed counts the tokens of requests that were executed to their end.
type Billed struct {
	// PromptTokens counts the prompt of a request once, whatever the number of its samples.
	PromptTokens  int64 `json:"promptTokens"`
	SampledTokens int64 `json:"sampledTokens"`
	// ForwardBackwardTokens and ForwardTokens count the tokens of training data.
	ForwardBackwardTokens int64 `json:"forwardBackwardTokens"`
	ForwardTokens         int64 `json:"forwardTokens"`
}

// Work says which seconds an operation counts for.
type Work int

// The kinds of work.
const (
	Training Work = iota
	Saving
)

// Counters counts the work of a server, over all restarts. It is safe for concurrent use.
type Counters struct {
	mu    sync.Mutex
	stats Stats
	bill  bill
}

// NewCounters returns counters at zero.
func NewCounters() *Counters {
	return &Counters{stats: Stats{Operations: map[string]int64{}, Calls: map[string]int64{}}, bill: newBill()}
}

// CountCall counts a request that arrived at an endpoint.
func (c *Counters) CountCall(op string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Calls[op]++
}

// CountOperation counts an operation and the time that it took.
func (c *Counters) CountOperation(op string, kind Work, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Operations[op]++
	if kind == Training {
		c.stats.TrainingSeconds += took.Seconds()
		return
	}
	c.stats.SavingSeconds += took.Seconds()
}

// CountPass counts the tokens of a pass over training data. A bill has the tokens of both kinds of passes.
func (c *Counters) CountPass(to Payer, tokens int, forwardOnly bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bill.add(to, UsageTraining, tokens)
	c.stats.TrainedTokens += int64(tokens)
	if forwardOnly {
		c.stats.Billed.ForwardTokens += int64(tokens)
		return
	}
	c.stats.Billed.ForwardBackwardTokens += int64(tokens)
}

// CountSample counts the tokens of a request for samples.
func (c *Counters) CountSample(to Payer, prompt, sampled int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bill.add(to, UsagePrefill, prompt)
	c.bill.add(to, UsageSample, sampled)
	c.stats.Billed.PromptTokens += int64(prompt)
	c.stats.Billed.SampledTokens += int64(sampled)
}

// CountSampling adds the work that an engine did until it was closed.
func (c *Counters) CountSampling(stats sampling.Stats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.add(stats)
}

// Read returns a copy of the counts plus the counts of the current engine.
func (c *Counters) Read(current sampling.Stats) Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	stats := c.stats
	stats.Operations = maps.Clone(stats.Operations)
	stats.Calls = maps.Clone(stats.Calls)
	stats.add(current)
	return stats
}

func (s *Stats) add(sampled sampling.Stats) {
	s.SamplingSeconds += sampled.Busy.Seconds()
	s.SampleBatches += sampled.Batches
	s.SampledRows += sampled.Rows
	s.SampledTokens += sampled.Tokens
}
