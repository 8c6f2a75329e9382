// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

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
