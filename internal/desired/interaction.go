// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// interactionOf returns what the spec of an interaction says, as programs read it.
func interactionOf(spec environment.Interaction) *contract.Interaction {
	var interaction contract.Interaction
	if use := spec.ToolUse; use != nil {
		interaction.ToolUse = toolUseOf(*use)
	}
	if w := spec.SolverJudge; w != nil {
		interaction.SolverJudge = &contract.SolverJudge{
			Solvers: int(*w.Solvers), SolverPrompt: w.SolverPrompt, JudgePrompt: w.JudgePrompt, AnswerPattern: w.AnswerPattern,
		}
	}
	if w := spec.SelfRefine; w != nil {
		interaction.SelfRefine = &contract.SelfRefine{
			DraftPrompt: w.DraftPrompt, CritiquePrompt: w.CritiquePrompt, RevisionPrompt: w.RevisionPrompt,
		}
	}
	return &interaction
}

func toolUseOf(use environment.ToolUse) *contract.ToolUse {
	return &contract.ToolUse{
		SystemPrompt: use.SystemPrompt, Dialect: contract.ToolDialect(use.Dialect),
		ParseErrors: contract.ParseErrors{
			MaxConsecutive: int(*use.ParseErrors.MaxConsecutive),
			Train:          contract.TrainParseErrors(use.ParseErrors.Train),
		},
	}
}
