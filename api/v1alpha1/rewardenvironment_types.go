// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RewardEnvironment gives tasks, plays episodes of them and rewards these. Runs pin it by digest:
// a change here concerns runs that start later.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=renv,categories=tinker
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Tasks",type=integer,JSONPath=`.status.tasks`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",optionalOldSelf=true,message="metadata.name must have at most 63 characters, of a-z, 0-9 and '-', and begin and end with a letter or digit: runs refer to it by this name and metrics are named after it; rename it"
type RewardEnvironment struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// What gives tasks and rewards.
	// +required
	Spec RewardEnvironmentSpec `json:"spec"`
	// What the probe found; written by the operator alone.
	// +optional
	Status RewardEnvironmentStatus `json:"status,omitzero"`
}

// RewardEnvironmentList is a list of RewardEnvironments.
// +kubebuilder:object:root=true
type RewardEnvironmentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RewardEnvironment `json:"items"`
}

// RewardEnvironmentSpec is a dataset with a reward.
// +kubebuilder:validation:XValidation:rule="has(self.dataset)",message="give dataset, where tasks come from: for example dataset: {arithmetic: {}}"
// +kubebuilder:validation:XValidation:rule="!has(self.dataset) || has(self.reward)",message="dataset needs reward, what an episode is worth: for example reward: {exactMatch: {}}"
type RewardEnvironmentSpec struct {
	// Dataset of tasks.
	// +optional
	Dataset *Dataset `json:"dataset,omitempty"`
	// Reward of an episode on a dataset.
	// +optional
	Reward *Reward `json:"reward,omitempty"`
	// Interaction is how an episode goes; without it, one reply is the answer.
	// +optional
	Interaction *Interaction `json:"interaction,omitempty"`
}

// Dataset of tasks.
// +kubebuilder:validation:XValidation:rule="has(self.arithmetic)",message="give exactly one of arithmetic"
type Dataset struct {
	// Arithmetic generates sums.
	// +optional
	Arithmetic *ArithmeticData `json:"arithmetic,omitempty"`
}

// ArithmeticData generates sums; a hash of the operands decides whether a sum is in train or in test.
type ArithmeticData struct {
	// MaxOperand is the greatest operand of a sum; the least is 0.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9999
	// +kubebuilder:default=99
	// +optional
	MaxOperand *int32 `json:"maxOperand,omitempty"`
}

// Reward is how an episode is rewarded.
// +kubebuilder:validation:XValidation:rule="has(self.exactMatch)",message="give exactly one of exactMatch"
type Reward struct {
	// ExactMatch compares with the field answer.
	// +optional
	ExactMatch *ExactMatch `json:"exactMatch,omitempty"`
}

// ExactMatch compares with the field answer.
type ExactMatch struct{}

// Interaction is how an episode goes.
// +kubebuilder:validation:XValidation:rule="has(self.toolUse)",message="give exactly one of toolUse"
type Interaction struct {
	// ToolUse is turns of one model that calls the dataset's tools until it answers. A sum's tool is a
	// calculator.
	// +optional
	ToolUse *ToolUse `json:"toolUse,omitempty"`
}

// ToolUse is turns of one model that calls tools.
type ToolUse struct {
	// SystemPrompt is the first message; $(tools) in it is replaced by the list of tools, which the model's
	// own format then does not declare.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	// +optional
	SystemPrompt string `json:"systemPrompt,omitempty"`
	// ParseErrors is what becomes of replies that break the model's format, such as a call that cannot be
	// read.
	// +kubebuilder:default={}
	// +optional
	ParseErrors ParseErrors `json:"parseErrors,omitzero"`
}

// TrainParseErrors is what training makes of replies that break the model's format.
// +kubebuilder:validation:Enum=Keep;Mask
type TrainParseErrors string

// What training makes of replies that break the model's format.
const (
	KeepParseErrors TrainParseErrors = "Keep"
	MaskParseErrors TrainParseErrors = "Mask"
)

// ParseErrors is what becomes of replies that break the model's format.
type ParseErrors struct {
	// MaxConsecutive in a row are answered with what is wrong; one more ends the episode.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:default=2
	// +optional
	MaxConsecutive *int32 `json:"maxConsecutive,omitempty"`
	// Train: Keep trains on such a reply, Mask leaves its tokens out.
	// +kubebuilder:default=Keep
	// +optional
	Train TrainParseErrors `json:"train,omitempty"`
}

// RewardEnvironmentStatus is what the probe found.
type RewardEnvironmentStatus struct {
	// Conditions: Ready.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ObservedGeneration is the spec that was probed.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
	// Digest of the spec and of what it resolved to; runs pin it.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Digest string `json:"digest,omitempty"`
	// Tasks in all splits.
	// +optional
	Tasks *int64 `json:"tasks,omitempty"`
	// Splits that were found.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Splits []SplitStatus `json:"splits,omitempty"`
	// CanaryReward of the episode that the probe played with the right answer.
	// +optional
	CanaryReward *float64 `json:"canaryReward,omitempty"`
	// ProbeTime is when the probe ended.
	// +optional
	ProbeTime *metav1.Time `json:"probeTime,omitempty"`
}

// SplitStatus is a split that was found.
type SplitStatus struct {
	// Name of the split.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
	// Tasks in it.
	// +optional
	Tasks *int64 `json:"tasks,omitempty"`
}
