// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestRewardRuleValidate(t *testing.T) {
	leaf := RewardRule{Math: &Math{}}
	cases := map[string]struct {
		rule RewardRule
		// names is in the problem; it is empty for a valid rule.
		names string
	}{
		"exactMatch": {rule: RewardRule{ExactMatch: &ExactMatch{}}},
		"exactMatch of a text": {rule: RewardRule{ExactMatch: &ExactMatch{Part: PartText,
			Normalize: []Normalization{NormalizeCase}}}},
		"regex":      {rule: RewardRule{Regex: &Regex{Pattern: "a"}}},
		"jsonSchema": {rule: RewardRule{JSONSchema: &JSONSchema{Schema: json.RawMessage("{}")}}},
		"countdown":  {rule: RewardRule{Countdown: &Countdown{}}},
		"expression": {rule: RewardRule{Expression: "1.0"}},
		"a sum": {rule: RewardRule{Weighted: []WeightedReward{{Name: "a", Weight: 1, Rule: leaf},
			{Name: "b", Weight: -1, Rule: leaf}}}},
		"rubric": {rule: RewardRule{Rubric: rubric(nil)}},
		"rubric at an endpoint": {rule: RewardRule{Rubric: rubric(func(r *Rubric) {
			r.Judge.Tinker, r.Judge.OpenAI = nil, &OpenAIJudge{BaseURL: "https://a/v1", Model: "m",
				APIKey: &SecretKey{Name: "s", Key: "k"}}
		})}},
		"rubric in a sum": {rule: RewardRule{Weighted: []WeightedReward{{Name: "a", Weight: 1,
			Rule: RewardRule{Rubric: rubric(nil)}}}}},
		"a rubric without a judge": {rule: RewardRule{Rubric: rubric(func(r *Rubric) { r.Judge.Tinker = nil })},
			names: "reward.rubric.judge must be"},
		"a rubric with two judges": {rule: RewardRule{Rubric: rubric(
			func(r *Rubric) { r.Judge.OpenAI = &OpenAIJudge{BaseURL: "http://a", Model: "m"} })},
			names: "reward.rubric.judge must be"},
		"a judge of nothing": {rule: RewardRule{Rubric: rubric(func(r *Rubric) { r.Judge.Tinker = &TinkerJudge{} })},
			names: "reward.rubric.judge.tinker"},
		"a judge whose baseURL is not a URL": {rule: RewardRule{Rubric: rubric(func(r *Rubric) {
			r.Judge.Tinker,
				r.Judge.OpenAI = nil, &OpenAIJudge{BaseURL: "a", Model: "m"}
		})},
			names: "reward.rubric.judge.openAI.baseURL"},
		"an unknown scoring": {rule: RewardRule{Rubric: rubric(func(r *Rubric) { r.Scoring = "Mean" })},
			names: "reward.rubric.scoring"},
		"a coverage above 1": {rule: RewardRule{Rubric: rubric(func(r *Rubric) { r.MinCoverage = 1.5 })},
			names: "reward.rubric.minCoverage"},
		"a coverage that is NaN": {rule: RewardRule{Rubric: rubric(func(r *Rubric) { r.MinCoverage = math.NaN() })},
			names: "reward.rubric.minCoverage"},
		"too many retries of a judge": {rule: RewardRule{Rubric: rubric(func(r *Rubric) { r.Judge.Retries = 64 })},
			names: "reward.rubric.judge.retries"},
		"a judge with maxTokens 0": {rule: RewardRule{Rubric: rubric(func(r *Rubric) { r.Judge.MaxTokens = 0 })},
			names: "reward.rubric.judge.sampling.maxTokens"},
		"a judge without time": {rule: RewardRule{Rubric: rubric(func(r *Rubric) { r.Judge.TimeoutSeconds = 0 })},
			names: "reward.rubric.judge.timeoutSeconds"},
		"nothing": {names: "reward must be exactly one of"},
		"two members": {rule: RewardRule{Math: &Math{}, GSM8K: &GSM8K{}},
			names: "reward must be exactly one of"},
		"an unknown part": {rule: RewardRule{ExactMatch: &ExactMatch{Part: "Half"}},
			names: "reward.exactMatch.part"},
		"a normalized integer": {rule: RewardRule{ExactMatch: &ExactMatch{Normalize: []Normalization{NormalizeCase}}},
			names: "reward.exactMatch.normalize"},
		"an unknown normalization": {rule: RewardRule{ExactMatch: &ExactMatch{Part: PartText,
			Normalize: []Normalization{"Verbs"}}}, names: "reward.exactMatch.normalize"},
		"no pattern": {rule: RewardRule{Regex: &Regex{}}, names: "reward.regex.pattern"},
		"no schema":  {rule: RewardRule{JSONSchema: &JSONSchema{}}, names: "reward.jsonSchema.schema"},
		"a schema that is too long": {rule: RewardRule{JSONSchema: &JSONSchema{Schema: json.RawMessage(`"` +
			strings.Repeat("a", 70000) + `"`)}}, names: "reward.jsonSchema.schema"},
		"a sum of nothing": {rule: RewardRule{Weighted: []WeightedReward{}}, names: "reward.weighted"},
		"a sum without a name": {rule: RewardRule{Weighted: []WeightedReward{{Weight: 1, Rule: leaf}}},
			names: "reward.weighted[0].name"},
		"a sum with a name twice": {rule: RewardRule{Weighted: []WeightedReward{{Name: "a", Weight: 1, Rule: leaf},
			{Name: "a", Weight: 1, Rule: leaf}}}, names: "reward.weighted[1].name"},
		"a sum with a weight of 0": {rule: RewardRule{Weighted: []WeightedReward{{Name: "a", Rule: leaf}}},
			names: "reward.weighted[0].weight"},
		"a sum with a weight of NaN": {rule: RewardRule{Weighted: []WeightedReward{{Name: "a", Weight: math.NaN(),
			Rule: leaf}}}, names: "reward.weighted[0].weight"},
		"a sum of an empty rule": {rule: RewardRule{Weighted: []WeightedReward{{Name: "a", Weight: 1}}},
			names: "reward.weighted[0] must be"},
		"a sum of an invalid rule": {rule: RewardRule{Weighted: []WeightedReward{{Name: "a", Weight: 1,
			Rule: RewardRule{Regex: &Regex{}}}}}, names: "reward.weighted[0].regex.pattern"},
		"a sum of a sum": {rule: RewardRule{Weighted: []WeightedReward{{Name: "a", Weight: 1,
			Rule: RewardRule{Weighted: []WeightedReward{{Name: "a", Weight: 1, Rule: leaf}}}}}},
			names: "reward.weighted[0] must be"},
		"a sum beside another member": {rule: RewardRule{Math: &Math{},
			Weighted: []WeightedReward{{Name: "a", Weight: 1, Rule: leaf}}}, names: "reward must be exactly one of"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var p problems
			tc.rule.validate(&p, "reward")
			err := p.join()
			if (err == nil) != (tc.names == "") || err != nil && !strings.Contains(err.Error(), tc.names) {
				t.Errorf("validate: err = %v, want %q", err, tc.names)
			}
		})
	}
}

func rubric(change func(*Rubric)) *Rubric {
	r := &Rubric{Scoring: ScorePassRate, MinCoverage: 1, Judge: Judge{
		Tinker: &TinkerJudge{Model: "m"}, Temperature: 0.7, MaxTokens: 4096, Retries: 3, TimeoutSeconds: 300,
	}}
	if change != nil {
		change(r)
	}
	return r
}

// TestDefinitionDigestOfRewards holds digests that runs have pinned.
func TestDefinitionDigestOfRewards(t *testing.T) {
	definition := Definition{
		Dataset: &Dataset{Arithmetic: &Arithmetic{MaxOperand: 99}},
		Reward:  &RewardRule{ExactMatch: &ExactMatch{}},
	}
	data, err := json.Marshal(definition)
	if want := `{"dataset":{"arithmetic":{"maxOperand":99}},"reward":{"exactMatch":{}}}`; err != nil ||
		string(data) != want {
		t.Errorf("the definition of arithmetic is %s, %v, want %s", data, err, want)
	}
}

func TestDefinitionOfSchemaRoundTrip(t *testing.T) {
	definition := Definition{
		Dataset: &Dataset{Arithmetic: &Arithmetic{MaxOperand: 99}},
		Reward:  &RewardRule{JSONSchema: &JSONSchema{Schema: json.RawMessage(`{"required":["a"],"type":"object"}`)}},
	}
	data, err := EncodeDefinition(definition)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := DecodeDefinition(data)
	if err != nil {
		t.Fatal(err)
	}
	before, _ := DefinitionDigest(definition)
	if after, err := DefinitionDigest(decoded); err != nil || after != before {
		t.Errorf("the digest is %s before and %s after, %v", before, after, err)
	}
}
