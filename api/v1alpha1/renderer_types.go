// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"

// Renderer turns conversations into tokens and back: a built-in renderer, or a chat template.
// +kubebuilder:validation:XValidation:rule="has(self.name) != has(self.template)",message="give exactly one of name and template"
type Renderer struct {
	// name is the name of a built-in renderer, for example qwen3_instruct.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Name string `json:"name,omitempty"`
	// template is a chat template, which renders instead of a built-in renderer.
	// +optional
	Template *Template `json:"template,omitempty"`
}

// Template is the source of a chat template. The text of the template is fixed when the run begins.
// +kubebuilder:validation:XValidation:rule="[has(self.repository), has(self.configMapKeyRef), has(self.inline)].exists_one(x, x)",message="give exactly one of repository, configMapKeyRef and inline"
type Template struct {
	// repository selects the template of the model: chat_template.jinja or tokenizer_config.json in the repository of
	// model.tokenizer, or else in the repository that model.name names.
	// +optional
	Repository *TemplateRepository `json:"repository,omitempty"`
	// configMapKeyRef is the ConfigMap key that holds the template. A later change of the ConfigMap has no effect on the
	// run.
	// +optional
	ConfigMapKeyRef *ref.ConfigMapKey `json:"configMapKeyRef,omitempty"`
	// inline is the template.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=131072
	// +optional
	Inline string `json:"inline,omitempty"`
	// sha256 is the SHA-256 digest of the template's text, in hex. A template with another digest is refused.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{64}$')",message="sha256 must be 64 hexadecimal digits in lower case"
	// +optional
	SHA256 string `json:"sha256,omitempty"`
}

// TemplateRepository is the repository of the model.
type TemplateRepository struct{}
