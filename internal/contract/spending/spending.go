// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package spending has what a run uses, what that costs, and whether its budget is reached.
package spending

import (
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/finite"
)

// Usage counts the tokens of the steps and evaluations that count, each once, and apart from them what was bought again.
type Usage struct {
	PromptTokens      int64 `json:"promptTokens"`
	SampledTokens     int64 `json:"sampledTokens"`
	TrainedTokens     int64 `json:"trainedTokens"`
	BoughtTwiceTokens int64 `json:"boughtTwiceTokens"`
	// JudgePromptTokens and JudgeSampledTokens are those of judges, which the first two do not contain.
	JudgePromptTokens  int64 `json:"judgePromptTokens,omitempty"`
	JudgeSampledTokens int64 `json:"judgeSampledTokens,omitempty"`
	// ReferenceTokens are those that the reference of a KL penalty read.
	ReferenceTokens int64 `json:"referenceTokens,omitempty"`
}

// Total counts all tokens.
func (u Usage) Total() int64 {
	return u.PromptTokens + u.SampledTokens + u.TrainedTokens + u.BoughtTwiceTokens + u.JudgePromptTokens + u.JudgeSampledTokens + u.ReferenceTokens
}

// Add returns the sum of two usages without what was bought twice, which is counted for the run as a whole.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		PromptTokens: u.PromptTokens + v.PromptTokens, SampledTokens: u.SampledTokens + v.SampledTokens,
		TrainedTokens: u.TrainedTokens + v.TrainedTokens, JudgePromptTokens: u.JudgePromptTokens + v.JudgePromptTokens,
		JudgeSampledTokens: u.JudgeSampledTokens + v.JudgeSampledTokens, ReferenceTokens: u.ReferenceTokens + v.ReferenceTokens,
	}
}

// Price is what a million tokens of a model cost, in US dollars.
type Price struct {
	Prompt  float64 `json:"prompt"`
	Sampled float64 `json:"sampled"`
	Trained float64 `json:"trained"`
}

// Prices are those of the models that a run uses. Judge and Reference are zero where the run has none.
type Prices struct {
	Policy    Price `json:"policy"`
	Judge     Price `json:"judge,omitzero"`
	Reference Price `json:"reference,omitzero"`
}

// USD returns what a usage costs. Prompts count in full, as if no endpoint granted a discount for those that it has cached, and tokens
// that were bought twice count as the dearer of sampled and trained ones.
func (p Prices) USD(u Usage) float64 {
	millionths := float64(u.PromptTokens)*p.Policy.Prompt + float64(u.SampledTokens)*p.Policy.Sampled +
		float64(u.TrainedTokens)*p.Policy.Trained + float64(u.BoughtTwiceTokens)*max(p.Policy.Sampled, p.Policy.Trained) +
		float64(u.JudgePromptTokens)*p.Judge.Prompt + float64(u.JudgeSampledTokens)*p.Judge.Sampled +
		float64(u.ReferenceTokens)*p.Reference.Prompt
	return millionths / 1e6
}

// Budget is what a run may use; 0 means no limit.
type Budget struct {
	Tokens int64   `json:"tokens,omitempty"`
	USD    float64 `json:"usd,omitempty"`
}

// Validate calls invalid for each value that is not valid, with its path and what it must be.
func (b *Budget) Validate(prices *Prices, invalid func(path, problem string)) {
	if b == nil {
		return
	}
	if b.Tokens < 0 {
		invalid("budget.tokens", "must be at least 0")
	}
	if b.USD < 0 || !finite.Is(b.USD) {
		invalid("budget.usd", "must be at least 0")
	}
	if b.USD > 0 && prices == nil {
		invalid("prices", "are needed with budget.usd")
	}
}

// Reached returns which limit is reached, for people, and nothing if the run may continue. usd is what the usage costs.
func (b *Budget) Reached(used Usage, usd float64) string {
	switch {
	case b == nil:
		return ""
	case b.Tokens > 0 && used.Total() >= b.Tokens:
		return fmt.Sprintf("budget.tokens (%d) is reached: %d tokens are used", b.Tokens, used.Total())
	case b.USD > 0 && usd >= b.USD:
		return fmt.Sprintf("budget.usd (%.2f) is reached: the tokens used cost about %.2f", b.USD, usd)
	}
	return ""
}
