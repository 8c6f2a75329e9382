// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package spending

import (
	"reflect"
	"strings"
	"testing"
)

// TestTotalAndUSDCountEachField sets one field after the other, so that a field that is added later cannot be
// forgotten.
func TestTotalAndUSDCountEachField(t *testing.T) {
	prices := Prices{
		Policy: Price{Prompt: 1, Sampled: 2, Trained: 3}, Judge: Price{Prompt: 4, Sampled: 5}, Reference: Price{Prompt: 6},
		Teacher: Price{Prompt: 7},
	}
	want := map[string]float64{
		"PromptTokens": 1, "SampledTokens": 2, "TrainedTokens": 3, "UnconfirmedTokens": 3,
		"JudgePromptTokens": 4, "JudgeSampledTokens": 5, "ReferenceTokens": 6, "TeacherTokens": 7,
	}
	fields := reflect.TypeFor[Usage]()
	for i := range fields.NumField() {
		var used Usage
		field := func(u *Usage) reflect.Value { return reflect.ValueOf(u).Elem().Field(i) }
		field(&used).SetInt(2e6)
		name := fields.Field(i).Name
		total := int64(2e6)
		if name == "BoughtTwiceTokens" || name == "CachedPromptTokens" {
			total = 0 // trained tokens, or prompt tokens, already include them
		}
		if got := used.Total(); got != total {
			t.Errorf("%s: the total is %d, want %d", name, got, total)
		}
		if got := prices.USD(used); got != 2*want[name] {
			t.Errorf("%s: 2,000,000 tokens cost %v, want %v", name, got, 2*want[name])
		}
		sum, most, least, difference := used.Add(used), used.Max(Usage{}), used.Min(Usage{}), used.Sub(used)
		if field(&sum).Int() != 4e6 || most != used || least != (Usage{}) || difference != (Usage{}) {
			t.Errorf("%s: the sum is %+v, the maximum %+v, the minimum %+v, the difference %+v", name, sum, most, least,
				difference)
		}
	}
}

func TestCachedPromptsCostWhatTheirPriceSays(t *testing.T) {
	used := Usage{PromptTokens: 10e6, CachedPromptTokens: 8e6}
	for name, tc := range map[string]struct {
		price Price
		want  float64
	}{
		"with a price":    {Price{Prompt: 1, CachedPrompt: 0.25}, 2 + 8*0.25},
		"without a price": {Price{Prompt: 1}, 10},
	} {
		if got := (Prices{Policy: tc.price}).USD(used); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
	// The counters of several workers may be from different times.
	if got := (Prices{Policy: Price{Prompt: 1, CachedPrompt: 0.5}}).USD(Usage{CachedPromptTokens: 5e6}); got != 0 {
		t.Errorf("cached tokens of no prompt cost %v, want 0", got)
	}
}

func TestReached(t *testing.T) {
	used := Usage{SampledTokens: 60, TrainedTokens: 40}
	cases := map[string]struct {
		budget *Budget
		usd    float64
		want   string
	}{
		"without a budget":      {nil, 5, ""},
		"below the tokens":      {&Budget{Tokens: 101}, 5, ""},
		"at the tokens":         {&Budget{Tokens: 100}, 0, "budget.tokens (100) is reached: 100 tokens are used"},
		"below the dollars":     {&Budget{Tokens: 101, USD: 5.01}, 5, ""},
		"at the dollars":        {&Budget{USD: 5}, 5, "budget.usd (5.00) is reached: the tokens used cost about 5.00"},
		"dollars without price": {&Budget{USD: 5}, 0, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.budget.Reached(used, tc.usd); got != tc.want {
				t.Errorf("the limit is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	for path, budget := range map[string]Budget{"budget.tokens": {Tokens: -1}, "budget.usd": {USD: -1},
		"prices": {USD: 1}} {
		var found []string
		budget.Validate(nil, func(path, problem string) { found = append(found, path+" "+problem) })
		if len(found) == 0 || !strings.HasPrefix(found[0], path+" ") {
			t.Errorf("problems of %+v are %q, want one of %s", budget, found, path)
		}
	}
}

// TestGrow checks that tokens keep the price that was valid when they were counted.
func TestGrow(t *testing.T) {
	cheap, dear := Prices{Policy: Price{Sampled: 1e6}}, Prices{Policy: Price{Sampled: 5e6, Trained: 1e6}}
	first := Priced{}.Grow(Usage{SampledTokens: 3, TrainedTokens: 2, UnconfirmedTokens: 9}, cheap)
	if want := (Priced{Usage{SampledTokens: 3, TrainedTokens: 2}, 3}); first != want {
		t.Errorf("the first tokens are %+v, want %+v", first, want)
	}
	second := first.Grow(Usage{SampledTokens: 5, TrainedTokens: 2}, dear)
	if want := (Priced{Usage{SampledTokens: 5, TrainedTokens: 2}, 13}); second != want {
		t.Errorf("two further tokens make %+v, want %+v", second, want)
	}
	if got := second.Grow(Usage{SampledTokens: 4}, dear); got != second {
		t.Errorf("counters that fall make %+v, want %+v", got, second)
	}
}
