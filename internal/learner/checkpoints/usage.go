// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoints

import (
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// usage is what the run has used: its steps, its evaluations, and what was bought again because it was lost. Steps and
// evaluations are counted by what they are, so that whoever makes or restores them counts each once.
type usage struct {
	// steps records what led to a version.
	steps       map[rl.Version]Spent
	evaluations map[evaluation]contract.Usage
	boughtTwice int64
}

// Spent is what the steps used that led to a version: tokens, and seconds of training.
type Spent struct {
	Tokens  contract.Usage
	Seconds float64
}

// evaluation identifies an evaluation of a version.
type evaluation struct {
	version rl.Version
	digest  string
}

func newUsage() usage {
	return usage{steps: map[rl.Version]Spent{}, evaluations: map[evaluation]contract.Usage{}}
}

// Spent returns what led to a version, if it is known.
func (b *Book) Spent(v rl.Version) (Spent, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	spent, ok := b.usage.steps[v]
	return spent, ok
}

// RestoreSpent records what led to a version, as its row has it.
func (b *Book) RestoreSpent(v rl.Version, spent Spent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	spent.Tokens.BoughtTwiceTokens = 0
	b.usage.steps[v] = spent
}

// AddStep records a step that was made from the parent of a version, with what it used. The tokens of a step that was
// made before, and was lost, are trained on twice.
func (b *Book) AddStep(v, parent rl.Version, step Spent, again bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.usage.steps[v]; known || again {
		b.usage.boughtTwice += step.Tokens.TrainedTokens
	}
	spent := b.usage.steps[parent]
	spent.Tokens = spent.Tokens.Add(step.Tokens)
	spent.Seconds += step.Seconds
	b.usage.steps[v] = spent
}

// AddSeconds adds to the seconds of the step that led to a version.
func (b *Book) AddSeconds(v rl.Version, seconds float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	spent := b.usage.steps[v]
	spent.Seconds += seconds
	b.usage.steps[v] = spent
}

// AddEvaluation records what an evaluation of a version used; its digest says which one it is.
func (b *Book) AddEvaluation(v rl.Version, digest string, used contract.Usage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.usage.evaluations[evaluation{v, digest}] = used
}

// AddBoughtTwice adds tokens that were bought again because the first result was lost.
func (b *Book) AddBoughtTwice(tokens int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.usage.boughtTwice += tokens
}

// BoughtTwice returns the tokens that were bought again.
func (b *Book) BoughtTwice() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.usage.boughtTwice
}

// Usage returns what the run has used at a version, with the evaluations, and the seconds of training beside it.
func (b *Book) Usage(at rl.Version) (used contract.Usage, trainingSeconds float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	spent := b.usage.steps[at]
	used = spent.Tokens
	for _, evaluated := range b.usage.evaluations {
		used = used.Add(evaluated)
	}
	used.BoughtTwiceTokens = b.usage.boughtTwice
	return used, spent.Seconds
}
