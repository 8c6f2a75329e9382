// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

// combine applies a function to each counter of a and b.
func combine(a, b endpoint.Tokens, of func(a, b int64) int64) endpoint.Tokens {
	return endpoint.Tokens{
		Prefill: of(a.Prefill, b.Prefill), CachedPrefill: of(a.CachedPrefill, b.CachedPrefill),
		Sample: of(a.Sample, b.Sample), Train: of(a.Train, b.Train), Forward: of(a.Forward, b.Forward),
	}
}

func add(a, b endpoint.Tokens) endpoint.Tokens {
	return combine(a, b, func(a, b int64) int64 { return a + b })
}

func sub(a, b endpoint.Tokens) endpoint.Tokens {
	return combine(a, b, func(a, b int64) int64 { return a - b })
}

func most(a, b endpoint.Tokens) endpoint.Tokens {
	return combine(a, b, func(a, b int64) int64 { return max(a, b) })
}

func least(a, b endpoint.Tokens) endpoint.Tokens {
	return combine(a, b, func(a, b int64) int64 { return min(a, b) })
}

// fits reports whether no counter is above its bound.
func fits(a, bound endpoint.Tokens) bool { return most(a, bound) == bound }

// total returns the number of all tokens. CachedPrefill is part of Prefill.
func total(t endpoint.Tokens) int64 { return t.Prefill + t.Sample + t.Train + t.Forward }

// costOf returns the cost of tokens in US dollars. Tokens of forward have the price of trained tokens, and cached
// tokens without a price of their own the price of other tokens of a prompt.
func costOf(t endpoint.Tokens, price spending.Price) float64 {
	cached := min(t.CachedPrefill, t.Prefill)
	return (float64(t.Prefill-cached)*price.Prompt + float64(cached)*cmp.Or(price.CachedPrompt, price.Prompt) +
		float64(t.Sample)*price.Sampled + float64(t.Train+t.Forward)*price.Trained) / 1e6
}
