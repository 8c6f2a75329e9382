// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package algorithm

import "cmp"

// Teacher is a model from which the policy learns. Each token that the policy sampled gets coefficient times (log
// p_teacher - log p_policy) added to its advantage, where p_policy is the probability under the policy that sampled the
// token. The terms are not centred. tinker-cookbook's on-policy distillation computes the same terms.
// +kubebuilder:validation:XValidation:rule="has(self.model) != has(self.checkpoint)",message="give exactly one of teacher.model and teacher.checkpoint; the policy's own base model is a teacher as well, for example with a systemPrompt"
type Teacher struct {
	// model is a base model that has the run's tokenizer.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Model string `json:"model,omitempty"`
	// checkpoint is the path of sampler weights, tinker://RUN/sampler_weights/NAME, of a model that has the run's
	// tokenizer.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^tinker://.+/sampler_weights/.+$')",message="checkpoint must name sampler weights, tinker://RUN/sampler_weights/NAME, since a training state cannot be sampled"
	// +optional
	Checkpoint string `json:"checkpoint,omitempty"`
	// coefficient is the factor of the difference. Defaults to 1. (tinker-cookbook: kl_penalty_coef.)
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=true
	// +kubebuilder:validation:Maximum=100
	// +optional
	Coefficient float64 `json:"coefficient,omitempty"`
	// discount adds the differences of later tokens to a token's own difference, each multiplied by discount to the power
	// of its distance in tokens. Defaults to 0, which adds none. (tinker-cookbook: kl_discount_factor.)
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	// +optional
	Discount float64 `json:"discount,omitempty"`
	// systemPrompt is a system message for the teacher alone. It replaces the environment's system message, or precedes
	// the other messages if there is none. The policy learns to answer as if it had read this message. Environments with
	// interaction.agent do not support systemPrompt.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	// +optional
	SystemPrompt string `json:"systemPrompt,omitempty"`
}

// SetDefaults sets the defaults. The schema has no defaults for items of lists.
func (t *Teacher) SetDefaults() { t.Coefficient = cmp.Or(t.Coefficient, 1) }

// Reference is the model or checkpoint that teaches.
func (t Teacher) Reference() Reference { return Reference{Model: t.Model, Checkpoint: t.Checkpoint} }
