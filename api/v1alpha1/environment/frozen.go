// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import "cmp"

// FrozenModel is a model at the run's own endpoint that an agent may ask and that is not trained.
// +kubebuilder:validation:XValidation:rule="has(self.model) != has(self.checkpoint)",message="give exactly one of model and checkpoint"
type FrozenModel struct {
	// name is the name of the model. The agent asks the model by the name frozen/NAME.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9_-]*$')",message="must have lower-case letters, digits, hyphens and underscores, and begin with a letter"
	// +required
	Name string `json:"name"`
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
	// renderer is the renderer of the model's prompts. Defaults to the model's renderer.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Renderer string `json:"renderer,omitempty"`
	// sampling has the settings by which replies are drawn. A request can ask for fewer tokens.
	// +optional
	Sampling JudgeSampling `json:"sampling,omitzero"`
}

func (f *FrozenModel) setDefaults() {
	f.Sampling.Temperature = cmp.Or(f.Sampling.Temperature, new(0.7))
	f.Sampling.MaxTokens = cmp.Or(f.Sampling.MaxTokens, 4096)
}

// Judge returns the model as a judge, which samples in the same way.
func (f *FrozenModel) Judge() Judge {
	return Judge{Tinker: &TinkerJudge{Model: f.Model, Checkpoint: f.Checkpoint, Renderer: f.Renderer},
		Sampling: f.Sampling}
}
