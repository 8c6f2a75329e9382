// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import "github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"

// Rubric lets a model grade replies by the criteria in the row's field rubrics, a list of texts.
type Rubric struct {
	// judge is the model that grades the replies.
	// +required
	Judge Judge `json:"judge"`
	// scoring selects how replies are judged. PassRate asks for Yes or No for all criteria in one call, PerRubric for Yes
	// or No for each criterion in a call of its own; the reward of both is the share of Yes. Score asks for a number from
	// 0 to 1 for each criterion in one call; the reward is the mean of the numbers. Defaults to PassRate.
	// +optional
	Scoring RubricScoring `json:"scoring,omitempty"`
	// minCoverage is the share of the criteria that a judgement must rate. A judgement that rates fewer is a fault.
	// Defaults to 1.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	// +optional
	MinCoverage *float64 `json:"minCoverage,omitempty"`
}

// RubricScoring selects how judgements are requested and turned into a reward.
// +kubebuilder:validation:Enum=PassRate;PerRubric;Score
type RubricScoring string

// The ways of scoring.
const (
	ScorePassRate  RubricScoring = "PassRate"
	ScorePerRubric RubricScoring = "PerRubric"
	ScoreScore     RubricScoring = "Score"
)

// Judge is a model that grades replies.
// +kubebuilder:validation:XValidation:rule="has(self.tinker) != has(self.openAI)",message="give exactly one of tinker and openAI"
type Judge struct {
	// tinker is a judge at the run's own endpoint, which is called with the run's key.
	// +optional
	Tinker *TinkerJudge `json:"tinker,omitempty"`
	// openAI is an endpoint that speaks OpenAI's chat completions.
	// +optional
	OpenAI *OpenAIJudge `json:"openAI,omitempty"`
	// sampling has the settings by which judgements are drawn.
	// +optional
	Sampling JudgeSampling `json:"sampling,omitzero"`
	// retries is the number of times to repeat a judgement that failed or could not be read. While a judge is down, the
	// run waits. Defaults to 3.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=63
	// +optional
	Retries *int32 `json:"retries,omitempty"`
	// timeoutSeconds is the timeout of one call. Defaults to 300.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +optional
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
}

// TinkerJudge is a judge on Tinker.
// +kubebuilder:validation:XValidation:rule="has(self.model) != has(self.checkpoint)",message="give exactly one of model and checkpoint"
type TinkerJudge struct {
	// model is a base model.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Model string `json:"model,omitempty"`
	// checkpoint is the path of sampler weights. The endpoint is asked for their base model.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^tinker://[^/]+/sampler_weights/[^/]+$')",message="must be sampler weights, tinker://RUN/sampler_weights/NAME"
	// +optional
	Checkpoint string `json:"checkpoint,omitempty"`
	// renderer is the renderer of the judge's prompts. Defaults to the model's renderer.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Renderer string `json:"renderer,omitempty"`
}

// OpenAIJudge is a judge at an endpoint that speaks OpenAI's chat completions.
type OpenAIJudge struct {
	// baseURL is the address of the endpoint, such as https://api.openai.com/v1.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/]')",message="must begin with http:// or https://, followed by a host"
	// +required
	BaseURL string `json:"baseURL"`
	// model is the name of the model as the endpoint spells it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +required
	Model string `json:"model"`
	// apiKeySecretKeyRef is the Secret key with the API key. If it is absent, no key is sent.
	// +optional
	APIKeySecretKeyRef *ref.SecretKey `json:"apiKeySecretKeyRef,omitempty"`
}

// JudgeSampling has the settings by which judgements are drawn.
type JudgeSampling struct {
	// temperature is the temperature of judgements. With 0, a repeated judgement is the same, and an unreadable one stays
	// unreadable. Defaults to 0.7.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2
	// +optional
	Temperature *float64 `json:"temperature,omitempty"`
	// maxTokens limits the tokens of one call. Defaults to 4096.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=131072
	// +optional
	MaxTokens int32 `json:"maxTokens,omitempty"`
}
