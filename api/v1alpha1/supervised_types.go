// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"

// TrainOn selects the messages of a conversation on which a supervised run trains.
// +kubebuilder:validation:Enum=LastAssistant;AllAssistant;All;Marked
type TrainOn string

// The values of TrainOn.
const (
	TrainOnLastAssistant TrainOn = "LastAssistant"
	TrainOnAllAssistant  TrainOn = "AllAssistant"
	TrainOnAll           TrainOn = "All"
	TrainOnMarked        TrainOn = "Marked"
)

// Normalization selects the sum of the weights of a row.
// +kubebuilder:validation:Enum=PerExample;PerToken
type Normalization string

// The values of Normalization.
const (
	NormalizationPerExample Normalization = "PerExample"
	NormalizationPerToken   Normalization = "PerToken"
)

// Supervised has the rows of a run of mode Supervise. A row has the column messages, the columns prompt and completion,
// or the column text.
type Supervised struct {
	// dataset is the source of the rows. The run trains on the split train. prompt, systemPrompt and examples are refused,
	// because rows are trained on as they are.
	// +kubebuilder:validation:XValidation:rule="!has(self.prompt) && !has(self.systemPrompt) && !has(self.examples)",message="prompt, systemPrompt and examples make prompts of rows, which a supervised run trains on as they are: remove them, and map columns with fields, as in fields: {prompt: question, completion: answer}"
	// +required
	Dataset environment.Dataset `json:"dataset"`
	// trainOn selects the messages to train on. LastAssistant selects the last message, if the assistant wrote it.
	// AllAssistant selects all messages of the assistant. All selects all messages. Marked selects the messages that the
	// row marks with weight or trainable. A row with the column text is trained on as a whole.
	// +kubebuilder:default=AllAssistant
	// +optional
	TrainOn TrainOn `json:"trainOn,omitempty"`
	// batchSize is the number of rows of one step.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +kubebuilder:default=128
	// +optional
	BatchSize *int32 `json:"batchSize,omitempty"`
	// maxTokens cuts longer rows at their end. If it is absent, rows that are longer than the model's context are left out
	// and counted. (tinker-cookbook: max_length.)
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=10000000
	// +optional
	MaxTokens *int32 `json:"maxTokens,omitempty"`
	// normalization selects the sum of the weights of a row. PerExample makes the sum 1. PerToken makes the sum the number
	// of tokens. (tinker-cookbook: reduction mean and none.)
	// +kubebuilder:default=PerExample
	// +optional
	Normalization Normalization `json:"normalization,omitempty"`
	// episodes selects the episodes that are trained on, if the rows are records that an evaluation of another run has
	// written (artifacts.episodes). Other rows are not affected. Defaults to all usable episodes.
	// +optional
	Episodes *EpisodeRows `json:"episodes,omitempty"`
}

// EpisodeSelection selects the episodes of a task that are trained on.
// +kubebuilder:validation:Enum=All;BestOfTask
type EpisodeSelection string

// The values of EpisodeSelection.
const (
	SelectAll        EpisodeSelection = "All"
	SelectBestOfTask EpisodeSelection = "BestOfTask"
)

// EpisodeRows selects records of episodes: by their reward (rejection sampling), or the best episode of each task (best
// of n).
// +kubebuilder:validation:MinProperties=1
type EpisodeRows struct {
	// minReward is the least reward of an episode.
	// +optional
	MinReward *float64 `json:"minReward,omitempty"`
	// select selects the episodes of a task that are trained on. All selects all episodes. BestOfTask selects the first
	// episode with the highest reward.
	// +kubebuilder:default=All
	// +optional
	Select EpisodeSelection `json:"select,omitempty"`
}

// SupervisedEvaluation measures the negative log-likelihood per token of rows that are held out.
type SupervisedEvaluation struct {
	// splits are the splits of supervised.dataset to measure. If they are absent, the split test is measured.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Splits []EvaluationSplit `json:"splits,omitempty"`
}
