// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

// Interaction is how an episode proceeds; it has exactly one member. Without it, one reply is the answer.
type Interaction struct {
	ToolUse     *ToolUse     `json:"toolUse,omitempty"`
	SolverJudge *SolverJudge `json:"solverJudge,omitempty"`
	SelfRefine  *SelfRefine  `json:"selfRefine,omitempty"`
}

// SolverJudge has solvers that answer and a judge that chooses one of the answers. Empty texts have the defaults.
type SolverJudge struct {
	Solvers       int    `json:"solvers"`
	SolverPrompt  string `json:"solverPrompt,omitempty"`
	JudgePrompt   string `json:"judgePrompt,omitempty"`
	AnswerPattern string `json:"answerPattern,omitempty"`
}

// SelfRefine has a draft, a critique and a revision. Empty texts have the defaults.
type SelfRefine struct {
	DraftPrompt    string `json:"draftPrompt,omitempty"`
	CritiquePrompt string `json:"critiquePrompt,omitempty"`
	RevisionPrompt string `json:"revisionPrompt,omitempty"`
}

// ToolUse lets the policy call tools, turn by turn, until it answers.
type ToolUse struct {
	// SystemPrompt is the first message; empty for none. $(tools) in it is replaced by the tools, which the
	// model's format then does not declare.
	SystemPrompt string `json:"systemPrompt,omitempty"`
	// Dialect is how calls are written; empty for the dialect of the model's format.
	Dialect     ToolDialect `json:"dialect,omitempty"`
	ParseErrors ParseErrors `json:"parseErrors"`
}

// ParseErrors is what becomes of replies that break the model's format.
type ParseErrors struct {
	// MaxConsecutive of them in a row are answered with what is wrong; one more ends the episode.
	MaxConsecutive int `json:"maxConsecutive"`
	// Train says whether such replies are training data.
	Train TrainParseErrors `json:"train"`
}

// Dialect returns how calls of tools are written in the interaction; empty for the dialect of the model's format.
func (i *Interaction) Dialect() ToolDialect {
	if i == nil || i.ToolUse == nil {
		return ""
	}
	return i.ToolUse.Dialect
}

func (i *Interaction) validate(p *problems, path string) {
	if i == nil {
		return
	}
	given := 0
	for _, member := range []bool{i.ToolUse != nil, i.SolverJudge != nil, i.SelfRefine != nil} {
		if member {
			given++
		}
	}
	p.require(given == 1, path, "must be one of toolUse, solverJudge and selfRefine")
	if i.SolverJudge != nil {
		p.require(i.SolverJudge.Solvers >= 1, path+".solverJudge.solvers", "must be at least 1")
	}
	if i.ToolUse == nil {
		return
	}
	errors := i.ToolUse.ParseErrors
	p.require(errors.MaxConsecutive >= 0, path+".toolUse.parseErrors.maxConsecutive", "must be at least 0")
	oneOf(p, path+".toolUse.dialect", i.ToolUse.Dialect, "", HermesJSON, QwenXML)
	oneOf(p, path+".toolUse.parseErrors.train", errors.Train, TrainKeep, TrainMask)
}
