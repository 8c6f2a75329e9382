// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
)

// EnvironmentRef names a RewardEnvironment in the run's own namespace.
type EnvironmentRef struct {
	// name is the name of the RewardEnvironment.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
}

// Split selects the tasks of one split of an environment to train on.
type Split struct {
	// name is the name of the split.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
	// shuffle draws tasks in a random order, which algorithm.seed decides and which changes with each epoch. With false,
	// tasks are drawn in the split's own order. Defaults to true.
	// +optional
	Shuffle *bool `json:"shuffle,omitempty"`
	// take limits the split to its first tasks, before shuffling. Defaults to all tasks. (OpenReward: num_samples.)
	// +kubebuilder:validation:Minimum=1
	// +optional
	Take *int64 `json:"take,omitempty"`
}

// EvaluationSplit selects the tasks of one split of an environment, always in the split's own order: runs with other
// seeds are evaluated on the same tasks.
type EvaluationSplit struct {
	// name is the name of the split.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
	// take limits the split to its first tasks. Defaults to all tasks.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Take *int64 `json:"take,omitempty"`
}

// EnvironmentUse selects an environment and its settings for training or evaluation.
type EnvironmentUse struct {
	// name is the key of the list and is part of the names of metrics.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must be of a-z, 0-9 and '-', beginning and ending with a letter or digit: it keys metrics; give the RewardEnvironment's name, and a hosted environment's name in that object's ors.name"
	// +required
	Name string `json:"name"`
	// environmentRef names the RewardEnvironment. Defaults to name, or to the RewardEnvironment of the entry that
	// evaluation.environments[].inheritFrom names.
	// +optional
	EnvironmentRef *EnvironmentRef `json:"environmentRef,omitempty"`
	// retries is the maximum number of times that a failed episode is repeated, each time in a new session. Defaults to 3,
	// or to the value of the entry that evaluation.environments[].inheritFrom names.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=63
	// +optional
	Retries *int32 `json:"retries,omitempty"`
	// sampling has the settings by which tokens are drawn.
	// +optional
	Sampling playing.Sampling `json:"sampling,omitzero"`
	// limits end an episode.
	// +optional
	Limits playing.Limits `json:"limits,omitzero"`
	// reward combines the rewards of an episode into one number.
	// +optional
	Reward playing.EpisodeReward `json:"reward,omitzero"`
}

// TrainingEnvironment is an environment to train on, with the settings of this run.
// +kubebuilder:validation:XValidation:rule="has(self.sampling) && has(self.sampling.maxTokens)",message="sampling.maxTokens is needed: the most tokens that one completion may have, for example 2048"
// +kubebuilder:validation:XValidation:rule="!has(self.sampling) || ((!has(self.sampling.temperature) || self.sampling.temperature == 1.0) && (!has(self.sampling.topP) || self.sampling.topP == 1.0) && !has(self.sampling.topK)) || (has(self.sampling.allowBiased) && self.sampling.allowBiased)",message="training at a temperature or topP other than 1, or with topK, biases the gradient, since log-probs are computed with the unchanged distribution: remove the setting, or accept that with sampling.allowBiased: true"
// +kubebuilder:validation:XValidation:rule="!has(self.minMembers) || self.minMembers <= self.groupSize",message="minMembers must be at most groupSize: lower minMembers or raise groupSize"
// +kubebuilder:validation:XValidation:rule="has(self.teacher) || self.groupSize >= 2",fieldPath=".groupSize",message="groupSize must be at least 2, since the rewards of a group are compared: raise it, or give a teacher for an environment with reward none"
// +kubebuilder:validation:XValidation:rule="has(self.teacher) || !has(self.minMembers) || self.minMembers >= 2",fieldPath=".minMembers",message="minMembers must be at least 2, since the rewards of a group are compared: raise it, or give a teacher for an environment with reward none"
// +kubebuilder:validation:XValidation:rule="!has(self.limits) || !has(self.limits.trajectoryTokens) || self.groupSize * self.limits.trajectoryTokens <= 130000000",fieldPath=".groupSize",message="groupSize x limits.trajectoryTokens must be at most 130000000 tokens, the limit of a group: lower one of them"
type TrainingEnvironment struct {
	EnvironmentUse `json:",inline"`
	// weight is this environment's share of slots, relative to the other environments. Set it for all environments or for
	// none.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=true
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Weight *float64 `json:"weight,omitempty"`
	// splits are the splits to train on. Defaults to the split train.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Splits []Split `json:"splits,omitempty"`
	// groupSize is the number of episodes of one task in a group. It must be at least 2, or at least 1 if the policy
	// learns only from a teacher.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	// +required
	GroupSize int32 `json:"groupSize"`
	// minMembers is the number of episodes of a group that must succeed for the group to be trained on. Defaults to half
	// of groupSize, rounded up, but at least to 2, or to 1 if the policy learns only from a teacher. (OpenReward:
	// num_rollouts - max_failing_rollouts.)
	// +kubebuilder:validation:Minimum=1
	// +optional
	MinMembers *int32 `json:"minMembers,omitempty"`
	// teacher is a model from which the policy learns in addition to the rewards, or instead of them if the environment
	// has reward none.
	// +optional
	Teacher *algorithm.Teacher `json:"teacher,omitempty"`
	// onUnavailable selects what the run does while no worker can play the environment, for example because its server is
	// down. Wait waits for the environment. Skip leaves its tasks out after 30 seconds, and trains on the other
	// environments. Defaults to Wait.
	// +kubebuilder:validation:Enum=Wait;Skip
	// +optional
	OnUnavailable OnUnavailable `json:"onUnavailable,omitempty"`
}

// OnUnavailable selects a run's reaction to an environment that is unavailable.
type OnUnavailable string

// The ways to treat an unavailable environment.
const (
	UnavailableWait OnUnavailable = "Wait"
	UnavailableSkip OnUnavailable = "Skip"
)
