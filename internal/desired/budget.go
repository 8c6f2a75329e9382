// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/prices"
)

// BudgetOf returns the budget of a run; nil means that tokens and dollars are not limited.
func BudgetOf(run *v1alpha1.TrainingRun) *spending.Budget {
	b := run.Spec.Budget
	if b == nil || b.Tokens == nil && b.USD == nil {
		return nil
	}
	return &spending.Budget{Tokens: ptr.Deref(b.Tokens, 0), USD: ptr.Deref(b.USD, 0)}
}

// AddBudget adds the budget to a run file, and the prices of all models of the run if they are known. A budget in
// dollars needs them: an error says why dollars cannot be counted. endpoint are the prices of the run's TinkerEndpoint,
// which take precedence over the operator's prices.
func AddBudget(file *contract.RunFile, run *v1alpha1.TrainingRun, endpoint map[string]spending.Price) error {
	file.Budget = BudgetOf(run)
	found, err := pricesOf(*file, run.Spec.Budget, endpoint)
	if err == nil {
		file.Prices = found
		return nil
	}
	if file.Budget != nil && file.Budget.USD > 0 {
		return err
	}
	return nil
}

// pricesOf returns the prices of the models of a run.
func pricesOf(file contract.RunFile, budget *v1alpha1.Budget,
	endpoint map[string]spending.Price) (*spending.Prices, error) {
	given := maps.Clone(endpoint)
	if given == nil {
		given = map[string]spending.Price{}
	}
	if budget != nil {
		for _, p := range budget.Prices {
			given[p.Model] = spending.Price{Prompt: p.PromptUSDPerMillion, Sampled: p.SampledUSDPerMillion,
				Trained: p.TrainedUSDPerMillion, CachedPrompt: ptr.Deref(p.CachedPromptUSDPerMillion, 0)}
		}
	}
	lookup := func(model string) (spending.Price, error) {
		if price, ok := given[model]; ok {
			return price, nil
		}
		if price, ok := prices.Of(model); ok {
			return price, nil
		}
		return spending.Price{}, fmt.Errorf("model %q, which the price table of %s lacks", model, prices.Date())
	}
	var found spending.Prices
	var err error
	if found.Policy, err = lookup(file.Fixed.Model.Name); err != nil {
		return nil, err
	}
	if a := file.Fixed.Algorithm; a != nil && a.KL != nil {
		// A checkpoint is one of the policy's model.
		if found.Reference, err = lookup(cmp.Or(a.KL.Reference.Model, file.Fixed.Model.Name)); err != nil {
			return nil, err
		}
	}
	if found.Teacher, err = dearestTeacher(file.Fixed, lookup); err != nil {
		return nil, err
	}
	first := ""
	for _, model := range judgesOf(file) {
		price, err := lookup(model)
		if err != nil {
			return nil, err
		}
		if first != "" && price != found.Judge {
			return nil, fmt.Errorf("the judges %q and %q have different prices, and their tokens are counted "+
				"together", first, model)
		}
		first, found.Judge = model, price
	}
	return &found, nil
}

// dearestTeacher returns the price of the most expensive teacher, since the tokens of all teachers are counted
// together.
func dearestTeacher(fixed contract.Fixed, lookup func(string) (spending.Price, error)) (spending.Price, error) {
	var dearest spending.Price
	teachers := fixed.Teachers()
	for _, name := range slices.Sorted(maps.Keys(teachers)) {
		price, err := lookup(cmp.Or(teachers[name].Model, fixed.Model.Name)) // a checkpoint is one of the policy's model
		if err != nil {
			return spending.Price{}, err
		}
		if price.Prompt > dearest.Prompt {
			dearest = price
		}
	}
	return dearest, nil
}

// judgesOf lists the models that judge, by the names under which prices are looked up.
func judgesOf(file contract.RunFile) []string {
	environments := file.Fixed.Environments
	if file.Evaluation != nil {
		environments = append(environments[:len(environments):len(environments)], file.Evaluation.Environments...)
	}
	var models []string
	for _, environment := range environments {
		if agent := environment.Definition.Agent(); agent != nil {
			for _, frozen := range agent.Frozen {
				models = append(models, cmp.Or(frozen.Model, frozen.Checkpoint))
			}
		}
		for _, rubric := range environment.Definition.Reward.Rubrics() {
			switch judge := rubric.Judge; {
			case judge.OpenAI != nil:
				models = append(models, judge.OpenAI.Model)
			case judge.Tinker != nil:
				models = append(models, cmp.Or(judge.Tinker.Model, judge.Tinker.Checkpoint))
			}
		}
	}
	return models
}
