// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// checkJudges fails if a judge of the run is a base model that the endpoint does not know. The run would otherwise
// sample without getting rewards. A run that has a checkpoint does not fail: its judge was known, and may be again.
func checkJudges(file contract.RunFile, known []tinker.SupportedModel) error {
	if len(file.KnownCheckpoints) > 0 {
		return nil
	}
	for _, use := range usesOf(file) {
		if err := checkFrozen(use, known); err != nil {
			return err
		}
		for _, rubric := range use.Definition.Reward.Rubrics() {
			judge := rubric.Judge.Tinker
			if judge == nil || judge.Model == "" {
				continue
			}
			if slices.ContainsFunc(known, func(m tinker.SupportedModel) bool { return m.ModelName == judge.Model }) {
				continue
			}
			return Await(problem.ModelUnknown,
				"%s: the endpoint does not know the model %s, which rubric.judge.tinker.model "+
					"of the RewardEnvironment names: serve it there, or correct the name and create the run again", use.path,
				judge.Model)
		}
	}
	return nil
}

// checkFrozen is like checkJudges, but for base models that an agent asks besides the policy.
func checkFrozen(use use, known []tinker.SupportedModel) error {
	agent := use.Definition.Agent()
	if agent == nil {
		return nil
	}
	for _, model := range agent.Frozen {
		isKnown := func(m tinker.SupportedModel) bool { return m.ModelName == model.Model }
		if model.Model != "" && !slices.ContainsFunc(known, isKnown) {
			return Await(problem.ModelUnknown,
				"%s: the endpoint does not know the model %s, which interaction.agent.frozen[%s].model of the RewardEnvironment "+
					"names: serve it there, or correct the name and create the run again", use.path, model.Model, model.Name)
		}
	}
	return nil
}
