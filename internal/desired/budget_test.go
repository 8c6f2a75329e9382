// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/prices"
)

// fileOf returns the run file of a model with the given judges.
func fileOf(model string, judges ...environment.Judge) contract.RunFile {
	file := contract.RunFile{Fixed: contract.Fixed{Model: contract.Model{Name: model}, Algorithm: &algorithm.Algorithm{}}}
	for _, judge := range judges {
		file.Fixed.Environments = append(file.Fixed.Environments, contract.Environment{Definition: contract.Definition{
			Reward: &environment.Reward{Weighted: []environment.WeightedReward{
				{RewardRule: environment.RewardRule{Rubric: &environment.Rubric{Judge: judge}}}}},
		}})
	}
	return file
}

func TestAdd(t *testing.T) {
	qwen, known := prices.Of("Qwen/Qwen3-8B")
	if !known || prices.Date() == "" {
		t.Fatalf("the table of prices has Qwen3-8B %v and the date %q, want true and a date", known, prices.Date())
	}
	small, _ := prices.Of("Qwen/Qwen3.5-4B")
	openAI := environment.Judge{OpenAI: &environment.OpenAIJudge{Model: "gpt"}}
	tinker := func(model string) environment.Judge {
		return environment.Judge{Tinker: &environment.TinkerJudge{Model: model}}
	}
	own := []v1alpha1.ModelPrice{{Model: "gpt", PromptUSDPerMillion: 1, SampledUSDPerMillion: 2}}
	withKL := fileOf("Qwen/Qwen3-8B")
	withKL.Fixed.Algorithm.KL = &algorithm.KL{Reference: &algorithm.Reference{Model: "Qwen/Qwen3.5-4B"}}
	frozen := fileOf("Qwen/Qwen3-8B", openAI)
	frozen.Fixed.Environments[0].Definition.Interaction = &environment.Interaction{Agent: &environment.Agent{
		Frozen: []environment.FrozenModel{{Name: "teacher", Model: "Qwen/Qwen3.5-4B"}}}}
	frozenAlone := fileOf("Qwen/Qwen3-8B", tinker("Qwen/Qwen3.5-4B"))
	frozenAlone.Fixed.Environments[0].Definition = contract.Definition{
		Interaction: frozen.Fixed.Environments[0].Definition.Interaction}
	cases := map[string]struct {
		file   contract.RunFile
		prices []v1alpha1.ModelPrice
		want   *spending.Prices
		err    string
	}{
		"a model of the table":  {file: fileOf("Qwen/Qwen3-8B"), want: &spending.Prices{Policy: qwen}},
		"a model without price": {file: fileOf("own/model"), err: `model "own/model"`},
		"a price that is given": {file: fileOf("Qwen/Qwen3-8B"),
			prices: []v1alpha1.ModelPrice{{Model: "Qwen/Qwen3-8B", TrainedUSDPerMillion: 9}},
			want:   &spending.Prices{Policy: spending.Price{Trained: 9}}},
		"a reference":           {file: withKL, want: &spending.Prices{Policy: qwen, Reference: small}},
		"a judge without price": {file: fileOf("Qwen/Qwen3-8B", openAI), err: `model "gpt"`},
		"a judge with a price": {file: fileOf("Qwen/Qwen3-8B", openAI), prices: own,
			want: &spending.Prices{Policy: qwen, Judge: spending.Price{Prompt: 1, Sampled: 2}}},
		"two judges of one model": {file: fileOf("Qwen/Qwen3-8B", tinker("Qwen/Qwen3.5-4B"), tinker("Qwen/Qwen3.5-4B")),
			want: &spending.Prices{Policy: qwen, Judge: small}},
		"a frozen model":                  {file: frozenAlone, want: &spending.Prices{Policy: qwen, Judge: small}},
		"a frozen model of another price": {file: frozen, prices: own, err: "have different prices"},
		"judges of two prices": {file: fileOf("Qwen/Qwen3-8B", openAI, tinker("Qwen/Qwen3.5-4B")), prices: own,
			err: "have different prices"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := &v1alpha1.TrainingRun{Spec: v1alpha1.TrainingRunSpec{Budget: &v1alpha1.Budget{USD: new(10.0),
				Prices: tc.prices}}}
			file := tc.file
			err := AddBudget(&file, run, nil)
			if tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) || tc.err == "" && err != nil {
				t.Fatalf("Add = %v, want an error with %q", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, file.Prices); diff != "" {
				t.Errorf("prices (-want +got):\n%s", diff)
			}
			run.Spec.Budget = nil
			if err := AddBudget(&tc.file, run, nil); err != nil || tc.file.Budget != nil {
				t.Errorf("without a budget there are the budget %v and the error %v", tc.file.Budget, err)
			}
		})
	}
}

// TestPricesOfAnEndpointComeFirst checks that dollars are counted at the prices of the run's TinkerEndpoint, even for
// models that the operator's table lacks.
func TestPricesOfAnEndpointComeFirst(t *testing.T) {
	own := map[string]spending.Price{"own/model": {Prompt: 1}, "Qwen/Qwen3-8B": {Prompt: 2}}
	for model, prompt := range map[string]float64{"own/model": 1, "Qwen/Qwen3-8B": 2} {
		run := testRun(func(r *v1alpha1.TrainingRun) { r.Spec.Budget = &v1alpha1.Budget{USD: new(10.0)} })
		file := contract.RunFile{Fixed: contract.Fixed{Model: contract.Model{Name: model}}}
		if err := AddBudget(&file, run, own); err != nil || file.Prices.Policy.Prompt != prompt {
			t.Errorf("%s: the prices are %v (%v)", model, file.Prices, err)
		}
	}
	if len(own) != 2 {
		t.Errorf("the prices of the endpoint were changed: %v", own)
	}
}
