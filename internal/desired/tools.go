// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"maps"
	"slices"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/models"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// checkToolCalls refuses limits.toolCalls of environments whose code calls the tools. An entry of the evaluation that
// inherits the limit from an entry with other tools is not affected by it, and is not refused.
func checkToolCalls(run *v1alpha1.TrainingRun, pins Pins) error {
	limited := map[string]string{}
	for _, use := range run.Spec.Environments {
		if use.Limits.ToolCalls > 0 {
			limited["environments["+use.Name+"]"] = RefName(use.EnvironmentUse)
		}
	}
	if evaluation := run.Spec.Evaluation; evaluation != nil {
		uses := EvaluationUses(run) // with the references that entries inherit
		for i, given := range evaluation.Environments {
			if given.Limits.ToolCalls > 0 {
				limited["evaluation.environments["+given.Name+"]"] = RefName(uses[i].EnvironmentUse)
			}
		}
	}
	for _, entry := range slices.Sorted(maps.Keys(limited)) {
		if pins[limited[entry]].Definition.Episodes() != nil {
			return unacceptable(problem.ToolCallsUnlimited, "%s.limits.toolCalls", entry)
		}
	}
	return nil
}

// checkTools checks that the model's format can declare the tools of the environments. The probe played one task: if
// others have tools, the workers find that out.
func checkTools(run *v1alpha1.TrainingRun, pins Pins, renderer string) error {
	if models.DeclaresTools(renderer) { // If the format is a template, the workers find out.
		return nil
	}
	for _, name := range References(run) {
		if pin := pins[name]; pin.DeclaresTools && pin.Definition.Interaction.Dialect() == "" {
			return unacceptable(problem.UnsupportedByFormat,
				"RewardEnvironment %q declares tools, and the format is %s", name, renderer)
		}
	}
	return nil
}
