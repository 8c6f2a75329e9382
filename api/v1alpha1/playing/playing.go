// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package playing

// Sampling has the settings by which tokens are drawn.
type Sampling struct {
	// maxTokens limits the tokens of one completion. Required to train.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxTokens int32 `json:"maxTokens,omitempty"`
	// temperature is the sampling temperature. Defaults to 1, or to the value of the entry that
	// evaluation.environments[].inheritFrom names. Training at another temperature needs allowBiased.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2
	// +optional
	Temperature *float64 `json:"temperature,omitempty"`
	// topP limits sampling to the most likely tokens whose probabilities sum to topP. Defaults to no limit. Training with
	// it needs allowBiased.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=true
	// +kubebuilder:validation:Maximum=1
	// +optional
	TopP float64 `json:"topP,omitempty"`
	// topK limits sampling to the k most likely tokens. Defaults to no limit. Training with it needs allowBiased.
	// +kubebuilder:validation:Minimum=1
	// +optional
	TopK int32 `json:"topK,omitempty"`
	// stop are strings that end a completion. Defaults to the strings of model.renderer.
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +optional
	Stop []string `json:"stop,omitempty"`
	// allowBiased permits training with settings by which the sampled distribution differs from the trained distribution.
	// +optional
	AllowBiased *bool `json:"allowBiased,omitempty"`
	// sharedPrompt samples the first replies of all episodes of a group by one request, so that the first prompt of a task
	// is bought once instead of once for each episode. It changes the samples. It needs a dataset, and an endpoint at
	// which the seed determines each sample of a request.
	// +optional
	SharedPrompt *bool `json:"sharedPrompt,omitempty"`
}

// SharesPrompt reports whether the first prompt of a task is bought once for its group.
func (s *Sampling) SharesPrompt() bool { return s.SharedPrompt != nil && *s.SharedPrompt }

// LimitPolicy selects the result of an episode that a limit ended.
// +kubebuilder:validation:Enum=Grade;Zero;Exclude
type LimitPolicy string

// The limit policies.
const (
	LimitGrade   LimitPolicy = "Grade"
	LimitZero    LimitPolicy = "Zero"
	LimitExclude LimitPolicy = "Exclude"
)

// Limits end an episode.
type Limits struct {
	// turns limits the turns of each conversation of an episode. Defaults to 50 if environmentRef has an interaction or a
	// server (ors), and to no limit otherwise.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2048
	// +optional
	Turns int32 `json:"turns,omitempty"`
	// requests limits the replies of an episode, in all of its conversations together.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1048576
	// +optional
	Requests int32 `json:"requests,omitempty"`
	// toolCalls limits the tool calls of an episode. If a reply has more calls than remain, its last calls do not run.
	// +kubebuilder:validation:Minimum=1
	// +optional
	ToolCalls int32 `json:"toolCalls,omitempty"`
	// promptTokens limits the tokens of the first prompt.
	// +kubebuilder:validation:Minimum=1
	// +optional
	PromptTokens int32 `json:"promptTokens,omitempty"`
	// trajectoryTokens limits the tokens of prompt, replies and tool results together.
	// +kubebuilder:validation:Minimum=1
	// +optional
	TrajectoryTokens int32 `json:"trajectoryTokens,omitempty"`
	// episodeSeconds limits the time of an episode from its first sample request. Time in queues does not count.
	// +kubebuilder:validation:Minimum=1
	// +optional
	EpisodeSeconds int32 `json:"episodeSeconds,omitempty"`
	// onLimit selects the result of an episode that a limit ended. Grade rewards it as it is. Zero gives it a reward of at
	// most 0. Exclude leaves it out of the group. Defaults to Grade, or to the value of the entry that
	// evaluation.environments[].inheritFrom names.
	// +optional
	OnLimit LimitPolicy `json:"onLimit,omitempty"`
}

// Reduction combines an episode's rewards into one number.
// +kubebuilder:validation:Enum=Sum;Mean;Max;Min;Last
type Reduction string

// The reductions.
const (
	ReductionSum  Reduction = "Sum"
	ReductionMean Reduction = "Mean"
	ReductionMax  Reduction = "Max"
	ReductionMin  Reduction = "Min"
	ReductionLast Reduction = "Last"
)

// EpisodeReward combines the rewards of an episode into one number.
// +kubebuilder:validation:XValidation:rule="!has(self.min) || !has(self.max) || self.min < self.max",message="min must be below max"
type EpisodeReward struct {
	// reduction combines the rewards into one. A null reward does not count. Defaults to Sum, or to the value of the entry
	// that evaluation.environments[].inheritFrom names.
	// +optional
	Reduction Reduction `json:"reduction,omitempty"`
	// nonterminal is added as a reward if the episode did not reach its end.
	// +optional
	Nonterminal *float64 `json:"nonterminal,omitempty"`
	// min is the minimum of the reduced reward.
	// +optional
	Min *float64 `json:"min,omitempty"`
	// max is the maximum of the reduced reward.
	// +optional
	Max *float64 `json:"max,omitempty"`
}
