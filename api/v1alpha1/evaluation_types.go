// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Evaluation samples held-out tasks.
type Evaluation struct {
	// everySteps is the number of steps between evaluations. With 0, a run does not evaluate while it trains.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=20
	// +optional
	EverySteps *int64 `json:"everySteps,omitempty"`
	// before evaluates the weights before the first step.
	// +kubebuilder:default=true
	// +optional
	Before *bool `json:"before,omitempty"`
	// after evaluates the weights after the last step.
	// +kubebuilder:default=true
	// +optional
	After *bool `json:"after,omitempty"`
	// samplingShare is the share of new episodes that belong to evaluations, while training also has episodes to sample.
	// It decides how many steps an evaluation lasts, whatever the speed of the endpoint, and does not change the weights.
	// With 0, evaluations use only idle capacity. With 1, training waits for evaluations.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	// +kubebuilder:default=0.2
	// +optional
	SamplingShare *float64 `json:"samplingShare,omitempty"`
	// environments are the environments to evaluate on. Defaults to the split test of each entry of spec.environments.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Environments []EvaluationEnvironment `json:"environments,omitempty"`
	// supervised measures the negative log-likelihood per token of held-out rows, in a run of mode Supervise.
	// +optional
	Supervised *SupervisedEvaluation `json:"supervised,omitempty"`
}

// EvaluationEnvironment is an environment to evaluate on.
// +kubebuilder:validation:XValidation:rule="has(self.inheritFrom) || has(self.environmentRef)",message="an entry needs environmentRef, the RewardEnvironment to evaluate on, or inheritFrom, the entry of spec.environments whose settings apply: add one of them"
// +kubebuilder:validation:XValidation:rule="has(self.inheritFrom) || (has(self.sampling) && has(self.sampling.maxTokens))",message="sampling.maxTokens is needed without inheritFrom: add it"
// +kubebuilder:validation:XValidation:rule="!has(self.passAt) || self.passAt.all(k, k <= (has(self.samplesPerTask) ? self.samplesPerTask : 1))",message="passAt above samplesPerTask cannot be estimated: raise samplesPerTask or remove the value"
// +kubebuilder:validation:XValidation:rule="!has(self.sampling) || !has(self.sampling.allowBiased)",message="sampling.allowBiased concerns training; evaluation may sample with any settings: remove it"
type EvaluationEnvironment struct {
	EnvironmentUse `json:",inline"`
	// inheritFrom names the entry of spec.environments that provides the defaults of environmentRef, retries, sampling,
	// limits and reward.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	InheritFrom string `json:"inheritFrom,omitempty"`
	// splits are the splits to evaluate on. Defaults to the split test.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Splits []EvaluationSplit `json:"splits,omitempty"`
	// samplesPerTask is the number of episodes of each task. Defaults to 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	// +optional
	SamplesPerTask *int32 `json:"samplesPerTask,omitempty"`
	// passAt are the values of k in pass@k. Defaults to 1.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:Minimum=1
	// +optional
	PassAt []int32 `json:"passAt,omitempty"`
}
