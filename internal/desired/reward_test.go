// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

func TestReward(t *testing.T) {
	cases := map[string]contract.RewardRule{
		"exactMatch: {}":                  {ExactMatch: &contract.ExactMatch{}},
		"exactMatch: {part: LastInteger}": {ExactMatch: &contract.ExactMatch{}},
		"exactMatch: {part: Text, normalize: [Space, Case]}": {ExactMatch: &contract.ExactMatch{
			Part: contract.PartText, Normalize: []contract.Normalization{contract.NormalizeCase, contract.NormalizeSpace}}},
		"regex: {pattern: '^a'}":     {Regex: &contract.Regex{Pattern: "^a"}},
		"countdown: {}":              {Countdown: &contract.Countdown{Strict: true}},
		"countdown: {strict: false}": {Countdown: &contract.Countdown{}},
		"math: {}":                   {Math: &contract.Math{}},
		"gsm8k: {strict: true}":      {GSM8K: &contract.GSM8K{Strict: true}},
		"rubric: {judge: {tinker: {model: m}}}": {Rubric: &contract.Rubric{Scoring: contract.ScorePassRate, MinCoverage: 1,
			Judge: contract.Judge{
				Tinker: &contract.TinkerJudge{Model: "m"}, Temperature: 0.7, MaxTokens: 4096, Retries: 3, TimeoutSeconds: 300,
			}}},
		"rubric: {scoring: Score, minCoverage: 0.5, judge: {tinker: {checkpoint: c, renderer: r}, sampling: {temperature: " +
			"0, maxTokens: 9}, retries: 0, timeoutSeconds: 5}}": {
			Rubric: &contract.Rubric{Scoring: contract.ScoreScore, MinCoverage: 0.5, Judge: contract.Judge{
				Tinker: &contract.TinkerJudge{Checkpoint: "c", Renderer: "r"}, MaxTokens: 9, TimeoutSeconds: 5,
			}}},
		"weighted: [{name: judged, weight: 1.0, rubric: {scoring: PerRubric, judge: {openAI: {baseURL: 'http://a', model: " +
			"m, apiKeySecretKeyRef: {name: s, key: k}}}}}]": {
			Weighted: []contract.WeightedReward{{Name: "judged", Weight: 1, Rule: contract.RewardRule{
				Rubric: &contract.Rubric{Scoring: contract.ScorePerRubric, MinCoverage: 1, Judge: contract.Judge{
					OpenAI: &contract.OpenAIJudge{BaseURL: "http://a", Model: "m",
						APIKey: &contract.SecretKey{Name: "s", Key: "k"}},
					Temperature: 0.7, MaxTokens: 4096, Retries: 3, TimeoutSeconds: 300,
				}}}}}},
		"expression: 'reply.truncated'": {Expression: "reply.truncated"},
		"jsonSchema: {schema: {type: object, properties: {b: {minimum: 1.50}, a: {}}}}": {JSONSchema: &contract.JSONSchema{
			Schema: json.RawMessage(`{"properties":{"a":{},"b":{"minimum":1.5}},"type":"object"}`)}},
		"weighted: [{name: correct, weight: 1.0, math: {}}, {name: brief, weight: 0.1, expression: 'size(reply.text) < 400 " +
			"? 1.0 : 0.0'}]": {
			Weighted: []contract.WeightedReward{
				{Name: "correct", Weight: 1, Rule: contract.RewardRule{Math: &contract.Math{}}},
				{Name: "brief", Weight: 0.1, Rule: contract.RewardRule{Expression: "size(reply.text) < 400 ? 1.0 : 0.0"}},
			}},
	}
	for text, want := range cases {
		t.Run(text, func(t *testing.T) {
			var reward environment.Reward
			if err := yaml.UnmarshalStrict([]byte(text), &reward); err != nil {
				t.Fatal(err)
			}
			got := rewardOf(reward)
			if diff := cmp.Diff(&want, got); diff != "" {
				t.Errorf("Reward (-want +got):\n%s", diff)
			}
			definition := contract.Definition{Dataset: &contract.Dataset{Arithmetic: &contract.Arithmetic{MaxOperand: 9}},
				Reward: got}
			if err := definition.Validate(); err != nil {
				t.Errorf("the definition is not valid: %v", err)
			}
		})
	}
}
