// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
)

// RewardEnvironment provides tasks, plays episodes of them and rewards the episodes. Runs pin it by digest: a change
// affects only runs that start later.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=renv,categories=tinker
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Tasks",type=integer,JSONPath=`.status.tasks`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",optionalOldSelf=true,message="metadata.name must have at most 63 characters, of a-z, 0-9 and '-', and begin and end with a letter or digit: runs refer to it by this name and metrics are named after it; rename it"
type RewardEnvironment struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec defines tasks and rewards.
	// +required
	Spec RewardEnvironmentSpec `json:"spec"`
	// status is the result of the probe. Only the operator writes it.
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

// RewardEnvironmentSpec is a dataset with a reward, or a server that has both.
// +kubebuilder:validation:XValidation:rule="has(self.dataset) || has(self.ors)",message="give dataset, the source of tasks, for example dataset: {arithmetic: {}}, or ors, a server that has tasks"
// +kubebuilder:validation:XValidation:rule="!has(self.dataset) || !has(self.ors)",message="give exactly one of dataset and ors: an ors server has its own tasks"
// +kubebuilder:validation:XValidation:rule="!has(self.ors) || !has(self.reward)",message="an ors server has its own rewards: remove reward"
// +kubebuilder:validation:XValidation:rule="!has(self.ors) || !has(self.interaction) || has(self.interaction.toolUse)",message="episodes of an ors server are tool use: remove interaction, or give interaction.toolUse"
// +kubebuilder:validation:XValidation:rule="!has(self.dataset) || has(self.reward) || (has(self.interaction) && (has(self.interaction.python) || (has(self.interaction.agent) && self.interaction.agent.reward.from == 'Agent')))",message="dataset needs reward: give one, for example reward: {exactMatch: {}}"
// +kubebuilder:validation:XValidation:rule="!has(self.reward) || !has(self.interaction) || !has(self.interaction.python)",message="interaction.python returns the rewards of its episodes: remove reward"
// +kubebuilder:validation:XValidation:rule="!has(self.reward) || !has(self.interaction) || !has(self.interaction.agent) || self.interaction.agent.reward.from != 'Agent'",message="the agent says its reward: remove reward, or give interaction.agent.reward.from LastMessage, Output or File"
// +kubebuilder:validation:XValidation:rule="!has(self.execution) || (has(self.interaction) && (has(self.interaction.python) || has(self.interaction.agent))) || (has(self.reward) && (has(self.reward.python) || (has(self.reward.weighted) && self.reward.weighted.exists(w, has(w.python) || has(w.tests) || (has(w.math) && has(w.math.grader) && w.math.grader == 'MathVerify'))) || has(self.reward.tests) || (has(self.reward.math) && has(self.reward.math.grader) && self.reward.math.grader == 'MathVerify'))) || (has(self.interaction) && has(self.interaction.toolUse) && has(self.interaction.toolUse.tools))",message="execution runs reward.python, interaction.python, interaction.agent and the programs of reward.tests and toolUse.tools: remove it, or give one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.ors) || !has(self.interaction) || !has(self.interaction.toolUse) || !has(self.interaction.toolUse.tools)",message="an ors server has its own tools: remove interaction.toolUse.tools"
type RewardEnvironmentSpec struct {
	// ors is an Open Reward Standard server, which has the tasks, the tools and the rewards.
	// +optional
	ORS *ORSEnvironment `json:"ors,omitempty"`
	// dataset is the source of tasks.
	// +optional
	Dataset *environment.Dataset `json:"dataset,omitempty"`
	// reward computes the reward of an episode on a dataset, unless interaction.python or interaction.agent returns it.
	// +optional
	Reward *environment.Reward `json:"reward,omitempty"`
	// execution is the container in which reward.python, interaction.python and interaction.agent run, and the programs of
	// reward.tests and interaction.toolUse.tools.
	// +optional
	Execution *Execution `json:"execution,omitempty"`
	// interaction is the course of an episode. Defaults to one reply, which is the answer.
	// +optional
	Interaction *environment.Interaction `json:"interaction,omitempty"`
	// pod changes the probe's pod, for instance its imagePullSecrets, resources and tolerations. A change does not affect
	// the values that runs pin. A probe without a result starts again with the new settings.
	// +optional
	Pod PodOverrides `json:"pod,omitzero"`
}

// RewardEnvironmentStatus is the result of the probe.
type RewardEnvironmentStatus struct {
	// conditions has one condition, Ready.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// codes are the codes of the problems that conditions show. A reason may stand for several codes; the table of
	// docs/troubleshooting.md describes each code.
	// +listType=map
	// +listMapKey=condition
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Codes []ConditionCode `json:"codes,omitempty"`
	// observedGeneration is the generation of the newest spec that was acted upon. While Ready is Unknown, the probe of
	// this spec is in progress.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
	// probedGeneration is the generation of the spec to which digest, tasks, splits, canaryReward and probeTime belong.
	// +optional
	ProbedGeneration *int64 `json:"probedGeneration,omitempty"`
	// digest is the digest of the spec and of its resolved references. Runs pin it.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Digest string `json:"digest,omitempty"`
	// tasks is the number of tasks of all splits.
	// +optional
	Tasks *int64 `json:"tasks,omitempty"`
	// splits are the splits that were found.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Splits []SplitStatus `json:"splits,omitempty"`
	// dataset is the data that the probe read. It is absent for generated tasks.
	// +optional
	Dataset *DatasetStatus `json:"dataset,omitempty"`
	// code lists the digests of the code that the probe read from configMapKeyRef. Runs pin the code.
	// +listType=map
	// +listMapKey=function
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Code []CodeStatus `json:"code,omitempty"`
	// image is the image of execution that the pod of the probe ran, with its digest, if a function of the spec is a
	// module of the image. Runs pin it. An image that was not pulled from a registry has no such digest: digest depends on
	// it, but runs do not pin it.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Image string `json:"image,omitempty"`
	// packages are the wheels that the probe has pinned for execution.requirements and their dependencies: name, version
	// and SHA-256 digest of each wheel. Pods of runs install these wheels and no others.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=512
	// +optional
	Packages []string `json:"packages,omitempty"`
	// canaryReward is the reward of the episode that the probe played with the right answer. It is absent if the answers
	// are not known.
	// +optional
	CanaryReward *float64 `json:"canaryReward,omitempty"`
	// deterministic says whether a reply that was played twice earned the same reward both times. It is absent if no reply
	// was played twice. If it is false, a resumed run may differ from an uninterrupted run.
	// +optional
	Deterministic *bool `json:"deterministic,omitempty"`
	// declaresTools says that the probe's episode had tools, which the format of a run's model has to declare.
	// +optional
	DeclaresTools *bool `json:"declaresTools,omitempty"`
	// probeTime is the time at which the probe ended.
	// +optional
	ProbeTime *metav1.Time `json:"probeTime,omitempty"`
}

// SplitStatus is a split that was found.
type SplitStatus struct {
	// name is the name of the split.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
	// tasks is the number of tasks in the split.
	// +optional
	Tasks *int64 `json:"tasks,omitempty"`
}

// CodeStatus is code that the probe read.
type CodeStatus struct {
	// function is the path of the function in the spec, for example reward.python.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Function string `json:"function"`
	// sha256 is the SHA-256 digest of the code.
	// +kubebuilder:validation:MaxLength=64
	// +required
	SHA256 string `json:"sha256"`
}

// DatasetStatus is the data that the probe read. Runs pin it.
type DatasetStatus struct {
	// revision is the commit to which hub.revision resolved.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Revision string `json:"revision,omitempty"`
	// sources are the sources that were read: files, or splits of the hub.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Sources []DataSourceStatus `json:"sources,omitempty"`
}

// DataSourceStatus is a source that was read.
type DataSourceStatus struct {
	// name is the name of the source, as splits[].source spells it.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// sha256 is the SHA-256 digest of the file or, for a split of the hub, of the list of its files with their digests.
	// +kubebuilder:validation:MaxLength=64
	// +required
	SHA256 string `json:"sha256"`
	// rows is the number of rows of the source.
	// +optional
	Rows *int64 `json:"rows,omitempty"`
}
