// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestForcedRuleFirstMatch(t *testing.T) {
	second := ForcedRule{Contains: "result", Scripts: []Script{{Share: 1, Tokens: []int32{2}}}}
	first := ForcedRule{Scripts: []Script{{Share: 1, Tokens: []int32{1}}}}
	s := &ForcedSamples{}
	if err := s.Replace([]ForcedRule{second, first}); err != nil {
		t.Fatal(err)
	}
	for prompt, want := range map[string][]int32{"a question": {1}, "": {1}, "a question, a call and a result": {2}} {
		if diff := cmp.Diff(want, s.Rule([]byte(prompt)).Tokens(3, 4)); diff != "" {
			t.Errorf("tokens for %q (-want +got):\n%s", prompt, diff)
		}
	}
}

func TestForcedTokensWithoutRule(t *testing.T) {
	var none *ForcedSamples
	empty := &ForcedSamples{}
	if none.Rule(nil).Tokens(1, 2) != nil || empty.Rule(nil).Tokens(1, 2) != nil {
		t.Error("tokens are forced without a rule")
	}
}

func TestForcedScriptShares(t *testing.T) {
	rule := ForcedRule{Scripts: []Script{{Share: 0.5, Tokens: []int32{1}}, {Share: 0.25, Tokens: []int32{2}}}}
	counts := map[int32]float64{}
	const n = 4000
	for i := range n {
		tokens := rule.Tokens(uint64(i/4), i%4)
		if diff := cmp.Diff(tokens, rule.Tokens(uint64(i/4), i%4)); diff != "" {
			t.Fatalf("sample %d is not decided by seed and index:\n%s", i, diff)
		}
		if tokens != nil {
			counts[tokens[0]]++
		}
	}
	for token, want := range map[int32]float64{1: 0.5, 2: 0.25} {
		if got := counts[token] / n; math.Abs(got-want) > 0.03 {
			t.Errorf("script %d has a share of %.3f, want %.2f", token, got, want)
		}
	}
}

func TestDecodeForcedRulesInvalid(t *testing.T) {
	cases := map[string]string{
		"invalid JSON":           `{`,
		"unknown field":          `{"rules": [{"contains": "a", "reward": 1}]}`,
		"trailing data":          `{"rules": []} {}`,
		"no scripts":             `{"rules": [{"contains": "a"}]}`,
		"no tokens":              `{"rules": [{"scripts": [{"share": 0.5}]}]}`,
		"no share":               `{"rules": [{"scripts": [{"tokens": [1]}]}]}`,
		"a share above 1":        `{"rules": [{"scripts": [{"share": 2, "tokens": [1]}]}]}`,
		"shares sum above 1":     `{"rules": [{"scripts": [{"share": 0.6, "tokens": [1]}, {"share": 0.6, "tokens": [2]}]}]}`,
		"a negative share":       `{"rules": [{"scripts": [{"share": -1, "tokens": [1]}]}]}`,
		"tokens beyond 32 bits":  `{"rules": [{"scripts": [{"share": 1, "tokens": [9999999999]}]}]}`,
		"list instead of object": `[]`,
	}
	for name, body := range cases {
		t.Run(name, func(t *testing.T) {
			s := &ForcedSamples{}
			rules, err := DecodeForcedRules([]byte(body))
			if err == nil {
				err = s.Replace(rules)
			}
			if err == nil || s.Rule(nil) != nil {
				t.Errorf("%s was accepted", body)
			}
		})
	}
}
