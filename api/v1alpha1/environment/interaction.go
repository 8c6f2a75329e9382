// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package environment

// Interaction is the course of an episode.
// +kubebuilder:validation:XValidation:rule="[has(self.toolUse), has(self.solverJudge), has(self.selfRefine), has(self.python), has(self.agent)].filter(x, x).size() == 1",message="give exactly one of toolUse, solverJudge, selfRefine, python and agent"
type Interaction struct {
	// toolUse is a conversation in which the policy calls tools until it answers. The dataset arithmetic has a calculator.
	// +optional
	ToolUse *ToolUse `json:"toolUse,omitempty"`
	// solverJudge lets several solvers answer the prompt independently, and a judge choose one of their answers. The roles
	// of the policy are solver and judge. (rLLM: the solver-judge workflow.)
	// +optional
	SolverJudge *SolverJudge `json:"solverJudge,omitempty"`
	// selfRefine lets the policy write a draft, a critique of the draft, and a revision. The roles of the policy are
	// draft, critique and revision.
	// +optional
	SelfRefine *SelfRefine `json:"selfRefine,omitempty"`
	// python is your own code, which plays episodes and returns their rewards: for several turns, several roles, or games
	// of a policy against itself. It runs beside each worker in a container of its own.
	// +optional
	Python *PythonEpisodes `json:"python,omitempty"`
	// agent is an existing program, which calls the policy as it calls the API of OpenAI or Anthropic. It runs beside each
	// worker in a container of its own or, if execution.placement is Pods, in pods of its own.
	// +optional
	Agent *Agent `json:"agent,omitempty"`
}

// Dialect returns the dialect of tool calls in the interaction; empty means the dialect of the model's format.
func (i *Interaction) Dialect() ToolDialect {
	if i == nil || i.ToolUse == nil {
		return ""
	}
	return i.ToolUse.Dialect
}

// ToolUse is a conversation in which the policy calls tools.
type ToolUse struct {
	// systemPrompt is the first message. $(tools) in systemPrompt is replaced by the list of tools, which the model's own
	// format then does not declare.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	// +optional
	SystemPrompt string `json:"systemPrompt,omitempty"`
	// dialect selects the form of tool declarations and calls: HermesJSON is a JSON object between <tool_call> tags,
	// QwenXML is <function=NAME> with parameters between them. Defaults to the form of model.renderer.
	// +optional
	Dialect ToolDialect `json:"dialect,omitempty"`
	// parseErrors selects the treatment of replies that break the model's format, such as a call that cannot be
	// read.
	// +kubebuilder:default={}
	// +optional
	ParseErrors ParseErrors `json:"parseErrors,omitzero"`
	// tools let the policy run programs, in a container without network. They replace the calculator.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Tools []SandboxTool `json:"tools,omitempty"`
}

// ToolDialect is the form of tool calls.
// +kubebuilder:validation:Enum=HermesJSON;QwenXML
type ToolDialect string

// The dialects of calls.
const (
	HermesJSON ToolDialect = "HermesJSON"
	QwenXML    ToolDialect = "QwenXML"
)

// TrainParseErrors selects how training uses replies that break the model's format.
// +kubebuilder:validation:Enum=Keep;Mask
type TrainParseErrors string

// The uses of replies that break the model's format.
const (
	KeepParseErrors TrainParseErrors = "Keep"
	MaskParseErrors TrainParseErrors = "Mask"
)

// ParseErrors selects the treatment of replies that break the model's format.
type ParseErrors struct {
	// maxConsecutive is the number of consecutive replies that may break the model's format. Each of them is answered with
	// an error message. One more ends the episode.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:default=2
	// +optional
	MaxConsecutive *int32 `json:"maxConsecutive,omitempty"`
	// train selects how training uses a reply that breaks the model's format. Keep trains on the reply. Mask leaves the
	// tokens of the reply out.
	// +kubebuilder:default=Keep
	// +optional
	Train TrainParseErrors `json:"train,omitempty"`
}

// SolverJudge has the settings of the solvers and the judge.
type SolverJudge struct {
	// solvers is the number of solvers of an episode. (rLLM: n_solutions.)
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +kubebuilder:default=2
	// +optional
	Solvers int32 `json:"solvers,omitempty"`
	// solverPrompt is a template in which $(prompt) is replaced. Defaults to the prompt and a request for an answer within
	// <answer> tags.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	// +kubebuilder:validation:XValidation:rule="self.contains('$(prompt)')",message="solverPrompt must contain $(prompt), which is replaced by the task's prompt"
	// +optional
	SolverPrompt string `json:"solverPrompt,omitempty"`
	// judgePrompt is a template in which $(prompt) and $(solutions) are replaced. Defaults to rLLM's criteria for
	// Countdown.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	// +kubebuilder:validation:XValidation:rule="self.contains('$(solutions)')",message="judgePrompt must contain $(solutions), which is replaced by the solvers' answers"
	// +optional
	JudgePrompt string `json:"judgePrompt,omitempty"`
	// answerPattern is a regular expression (RE2). The first group of its first match is the answer of a solver, or the
	// number, from 1, of the answer that the judge chooses. Defaults to the text between <answer> tags.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="''.matches(self) in [true, false]",message="does not compile: correct the regular expression; it has the syntax of RE2"
	// +kubebuilder:validation:XValidation:rule="self.contains('(')",message="answerPattern needs a group in parentheses, which is the answer"
	// +optional
	AnswerPattern string `json:"answerPattern,omitempty"`
}

// SelfRefine has the prompts for the draft, the critique and the revision.
type SelfRefine struct {
	// draftPrompt is a template in which $(prompt) is replaced. Defaults to $(prompt).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	// +optional
	DraftPrompt string `json:"draftPrompt,omitempty"`
	// critiquePrompt is a template in which $(prompt) and $(draft) are replaced. Defaults to the prompt, the draft and a
	// request to criticise the draft.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	// +kubebuilder:validation:XValidation:rule="self.contains('$(draft)')",message="critiquePrompt must contain $(draft), which is replaced by the draft"
	// +optional
	CritiquePrompt string `json:"critiquePrompt,omitempty"`
	// revisionPrompt is a template in which $(prompt), $(draft) and $(critique) are replaced. Defaults to the prompt, the
	// draft, the critique and a request for the final answer.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	// +kubebuilder:validation:XValidation:rule="self.contains('$(critique)')",message="revisionPrompt must contain $(critique), which is replaced by the critique"
	// +optional
	RevisionPrompt string `json:"revisionPrompt,omitempty"`
}
