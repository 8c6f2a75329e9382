// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// at returns prices in dollars: a sampled token costs the given amount, a trained token twice as much, a prompt token
// half as much, and a cached prompt token a tenth of a prompt token.
func at(dollars float64) *spending.Prices {
	million := dollars * 1e6
	return &spending.Prices{Policy: spending.Price{Prompt: million / 2, CachedPrompt: million / 20, Sampled: million,
		Trained: 2 * million}}
}

// pay sets the prices that the ledger uses; nil if a price is not known.
func (f *fixture) pay(prices *spending.Prices) *fixture {
	f.config.Prices = prices
	return f
}

// cost compares the cost of the answered tokens and of the unconfirmed tokens. A negative cost is expected to be
// unknown.
func (f *fixture) cost(t *testing.T, what string, answered, unconfirmed float64) {
	t.Helper()
	switch got := f.Spent().Cost; {
	case got == nil:
		if answered >= 0 {
			t.Errorf("%s: the cost is unknown, want %v and %v", what, answered, unconfirmed)
		}
	case answered < 0 || got.Answered != answered || got.Unconfirmed != unconfirmed:
		t.Errorf("%s: the cost is %+v, want %v and %v", what, *got, answered, unconfirmed)
	}
}

// next returns the ledger of the next attempt.
func (f *fixture) next(t *testing.T) *fixture {
	t.Helper()
	if err := f.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	return start(t, f)
}

// TestTokensKeepTheirPrice changes the prices between attempts.
func TestTokensKeepTheirPrice(t *testing.T) {
	f := start(t, nil).pay(at(1))
	f.own = spending.Usage{SampledTokens: 10, UnconfirmedTokens: 3}
	f.hello("w0", report("p0", 20, 0), nil)
	f.cost(t, "the first prices", 30, 6)
	f.hello("w0", report("p0", 20, 0), nil)
	f.cost(t, "a report that is repeated", 30, 6)
	f = f.next(t).pay(at(5))
	f.cost(t, "the next attempt, with higher prices", 30, 30)
	f.hello("w0", report("p0", 20, 0), nil)
	f.cost(t, "the worker reports again", 30, 30)
	f.hello("w0", report("p0", 21, 0), nil)
	f.own = sampled(2)
	f.cost(t, "three further tokens", 45, 30)
	f = f.next(t).pay(at(0.5))
	f.own = sampled(4)
	f.cost(t, "lower prices", 47, 3)
	f = f.next(t).pay(nil)
	f.own = sampled(2)
	f.cost(t, "a price is not known", -1, 0)
	f = f.next(t).pay(nil)
	f.own = sampled(2)
	f.cost(t, "still not", -1, 0)
	f = f.next(t).pay(at(2))
	f.cost(t, "tokens without a price cost the first that is known", 55, 12)
	f = f.next(t).pay(at(100))
	f.cost(t, "and keep it", 55, 600)
	if got := f.Step(rl.Version{Step: 1}, 1); got.Cost == nil || got.Cost.Answered != 55 {
		t.Errorf("a step costs %+v, want 55", got.Cost)
	}
}

// TestCachedTokensKeepTheirPrice reports the cached tokens of prompts later than the prompts.
func TestCachedTokensKeepTheirPrice(t *testing.T) {
	f := start(t, nil).pay(at(1))
	f.own = spending.Usage{PromptTokens: 100, CachedPromptTokens: 80}
	f.cost(t, "at once", 14, 0)
	f = f.next(t).pay(at(10))
	f.own = spending.Usage{PromptTokens: 100}
	f.cost(t, "not cached", 514, 0)
	f.own = spending.Usage{PromptTokens: 100, CachedPromptTokens: 20}
	f.cost(t, "the cost does not fall", 514, 0)
	f.own = spending.Usage{PromptTokens: 200, CachedPromptTokens: 120}
	f.cost(t, "more of both", 514, 0)
	f.own = spending.Usage{PromptTokens: 300, CachedPromptTokens: 120}
	f.cost(t, "and they count", 14+900+60, 0) // 180 tokens at 5 dollars, and 120 at half a dollar
}

// TestUsageOfARowKeepsItsPrice restores the usage of a row, as after the loss of the records of spending. The worker
// then reports the sampled tokens again.
func TestUsageOfARowKeepsItsPrice(t *testing.T) {
	f := start(t, nil).pay(at(5))
	priced := &spending.Priced{Usage: spending.Usage{SampledTokens: 10, TrainedTokens: 4}, USD: 18}
	f.RestoreRow(spending.Usage{TrainedTokens: 4}, priced, 1)
	f.cost(t, "before the worker reports", 18, 0)
	f.hello("w0", report("p0", 10, 0), nil)
	f.cost(t, "it reports what the row has", 18, 0)
	f.hello("w0", report("p0", 12, 0), nil)
	f.cost(t, "it reports more", 28, 0)

	f = start(t, nil).pay(at(5))
	f.RestoreRow(spending.Usage{TrainedTokens: 4}, nil, 1)
	f.cost(t, "a row of an earlier version of the program", 40, 0)
}
