// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// TrainModule is a part of the network that LoRA trains.
// +kubebuilder:validation:Enum=Attention;MLP;Unembed
type TrainModule string

// The parts of the network.
const (
	TrainAttention TrainModule = "Attention"
	TrainMLP       TrainModule = "MLP"
	TrainUnembed   TrainModule = "Unembed"
)

// Model is the base model and the LoRA adapter that is trained.
type Model struct {
	// Name of the base model as the endpoint spells it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +required
	Name string `json:"name"`
	// LoraRank is the rank of the adapter.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	// +kubebuilder:default=32
	// +optional
	LoraRank *int32 `json:"loraRank,omitempty"`
	// TrainModules are the parts of the network that the adapter covers.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:default={Attention,MLP,Unembed}
	// +optional
	TrainModules []TrainModule `json:"trainModules,omitempty"`
	// Seed initialises the adapter.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=0
	// +optional
	Seed *int64 `json:"seed,omitempty"`
}

// Tinker is the endpoint that samples and trains.
type Tinker struct {
	// BaseURL of the endpoint; without it, the operator's default, which is hosted Tinker
	// unless the chart says otherwise. Fixed once the run has started.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/]')",message="must begin with http:// or https://, followed by a host"
	// +optional
	BaseURL string `json:"baseURL,omitempty"`
	// APIKeySecretRef is the Secret key that holds the API key.
	// +required
	APIKeySecretRef SecretKeyRef `json:"apiKeySecretRef"`
}

// SecretKeyRef names one key of a Secret in the object's own namespace.
type SecretKeyRef struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// Key within the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Key string `json:"key"`
}
