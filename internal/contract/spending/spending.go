// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package spending defines the usage of a run, its cost, and its budget.
package spending

import (
	"cmp"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/finite"
)

// Usage counts the tokens of all answered requests, each request once. Requests with an unknown outcome are counted
// apart.
type Usage struct {
	PromptTokens int64 `json:"promptTokens"`
	// CachedPromptTokens are the prompt tokens that the endpoint reported as cached.
	CachedPromptTokens int64 `json:"cachedPromptTokens,omitempty"`
	SampledTokens      int64 `json:"sampledTokens"`
	// TrainedTokens are the tokens of forward_backward and of forward.
	TrainedTokens int64 `json:"trainedTokens"`
	// BoughtTwiceTokens are the trained tokens whose result was lost.
	BoughtTwiceTokens int64 `json:"boughtTwiceTokens"`
	// JudgePromptTokens and JudgeSampledTokens are the tokens of judges. The other counters do not contain them.
	JudgePromptTokens  int64 `json:"judgePromptTokens,omitempty"`
	JudgeSampledTokens int64 `json:"judgeSampledTokens,omitempty"`
	// ReferenceTokens are the tokens of requests for log-probabilities of the reference of a KL penalty. The other
	// counters do not contain them.
	ReferenceTokens int64 `json:"referenceTokens,omitempty"`
	// TeacherTokens are the tokens of requests for log-probabilities of teachers. The other counters do not contain them.
	TeacherTokens int64 `json:"teacherTokens,omitempty"`
	// UnconfirmedTokens is the maximum number of tokens of requests with an unknown outcome.
	UnconfirmedTokens int64 `json:"unconfirmedTokens,omitempty"`
}

// fields lists all counters, for arithmetic.
func (u *Usage) fields() []*int64 {
	return []*int64{
		&u.PromptTokens, &u.SampledTokens, &u.TrainedTokens, &u.BoughtTwiceTokens, &u.JudgePromptTokens,
		&u.JudgeSampledTokens,
		&u.ReferenceTokens, &u.UnconfirmedTokens, &u.CachedPromptTokens, &u.TeacherTokens,
	}
}

// combine returns a usage whose counters follow from the counters of two others.
func (u Usage) combine(v Usage, of func(a, b int64) int64) Usage {
	others := v.fields()
	for i, field := range u.fields() {
		*field = of(*field, *others[i])
	}
	return u
}

// Add returns the sum of two usages.
func (u Usage) Add(v Usage) Usage { return u.combine(v, func(a, b int64) int64 { return a + b }) }

// Sub returns the difference of two usages.
func (u Usage) Sub(v Usage) Usage { return u.combine(v, func(a, b int64) int64 { return a - b }) }

// Max returns the higher of each counter of two usages.
func (u Usage) Max(v Usage) Usage { return u.combine(v, func(a, b int64) int64 { return max(a, b) }) }

// Min returns the lower of each counter of two usages.
func (u Usage) Min(v Usage) Usage { return u.combine(v, func(a, b int64) int64 { return min(a, b) }) }

// Spent returns the number of tokens of answered requests.
func (u Usage) Spent() int64 {
	return u.PromptTokens + u.SampledTokens + u.TrainedTokens + u.JudgePromptTokens + u.JudgeSampledTokens +
		u.ReferenceTokens + u.TeacherTokens
}

// Total returns the number of all tokens, including the unconfirmed ones.
func (u Usage) Total() int64 { return u.Spent() + u.UnconfirmedTokens }

// Price is the price of a million tokens of a model, in US dollars.
type Price struct {
	Prompt float64 `json:"prompt"`
	// CachedPrompt is the price of cached prompt tokens; 0 if they cost as much as other prompt tokens.
	CachedPrompt float64 `json:"cachedPrompt,omitempty"`
	Sampled      float64 `json:"sampled"`
	Trained      float64 `json:"trained"`
}

// Prices are the prices of the models that a run uses. Judge, Reference and Teacher are zero if the run has none. If
// there are several teachers, Teacher is the price of the most expensive one.
type Prices struct {
	Policy    Price `json:"policy"`
	Judge     Price `json:"judge,omitzero"`
	Reference Price `json:"reference,omitzero"`
	Teacher   Price `json:"teacher,omitzero"`
}

// USD returns the cost of a usage. Prompts of judges, references and teachers count in full, as if none were cached,
// and unconfirmed tokens count at the highest price of the policy.
func (p Prices) USD(u Usage) float64 {
	cached := min(u.CachedPromptTokens, u.PromptTokens)
	millionths := float64(u.PromptTokens-cached)*p.Policy.Prompt +
		float64(cached)*cmp.Or(p.Policy.CachedPrompt, p.Policy.Prompt) + float64(u.SampledTokens)*p.Policy.Sampled +
		float64(u.TrainedTokens)*p.Policy.Trained +
		float64(u.UnconfirmedTokens)*max(p.Policy.Prompt, p.Policy.Sampled, p.Policy.Trained) +
		float64(u.JudgePromptTokens)*p.Judge.Prompt + float64(u.JudgeSampledTokens)*p.Judge.Sampled +
		float64(u.ReferenceTokens)*p.Reference.Prompt + float64(u.TeacherTokens)*p.Teacher.Prompt
	return millionths / 1e6
}

// Cost is the cost of a usage, in US dollars.
type Cost struct {
	// Answered is the cost of the answered tokens, each at the price when it was counted, and Unconfirmed the cost of the
	// unconfirmed tokens at the highest present price of the policy.
	Answered, Unconfirmed float64
}

// Total returns the cost of all tokens.
func (c Cost) Total() float64 { return c.Answered + c.Unconfirmed }

// Priced is a usage with its cost, in which each token has the price that was current when the token was counted. It
// has no unconfirmed tokens, since their requests may turn out not to have been executed.
type Priced struct {
	Usage Usage   `json:"usage"`
	USD   float64 `json:"usd"`
}

// Grow returns p with the tokens of a later usage of the same run. Only the growth of the counters costs the given
// prices. Neither counters nor cost fall.
func (p Priced) Grow(used Usage, prices Prices) Priced {
	used.UnconfirmedTokens = 0
	grown := p.Usage.Max(used)
	return Priced{Usage: grown, USD: p.USD + max(0, prices.USD(grown)-prices.USD(p.Usage))}
}

// Budget limits the usage of a run; 0 means no limit.
type Budget struct {
	Tokens int64   `json:"tokens,omitempty"`
	USD    float64 `json:"usd,omitempty"`
}

// Validate calls invalid for each invalid value, with its path and the rule.
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

// Reached describes the reached limit for people, or returns an empty text if the run may continue. usd is the cost of
// the usage.
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
