// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoints

import "github.com/tinker-operator/tinker-operator/internal/contract"

// usage is what the run has used: what its rows recorded before this learner began, and what it trained since.
type usage struct {
	base    contract.Usage
	trained int64
	seconds float64
}

// RestoreUsage sets what the run had used before this learner began.
func (b *Book) RestoreUsage(base contract.Usage, trainingSeconds float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.usage.base, b.usage.seconds = base, trainingSeconds
}

// AddTraining adds a step that this learner trained.
func (b *Book) AddTraining(tokens int64, seconds float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.usage.trained += tokens
	b.usage.seconds += seconds
}

// Usage adds what this learner's workers sampled to what the run has used, and returns the seconds of training
// beside it.
func (b *Book) Usage(sampled contract.Usage) (used contract.Usage, trainingSeconds float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return contract.Usage{
		PromptTokens:      b.usage.base.PromptTokens + sampled.PromptTokens,
		SampledTokens:     b.usage.base.SampledTokens + sampled.SampledTokens,
		TrainedTokens:     b.usage.base.TrainedTokens + b.usage.trained,
		BoughtTwiceTokens: b.usage.base.BoughtTwiceTokens + sampled.BoughtTwiceTokens,
	}, b.usage.seconds
}
