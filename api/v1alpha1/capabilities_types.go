// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Capabilities are the operations that an endpoint supports with a base model, as capability checks found. Losses have
// the names loss.NAME and loss.NAME.SETTING, and settings of the optimizer have the names adam.NAME, spelled as in the
// Tinker API. It is unknown whether the endpoint supports a feature in none of the lists.
type Capabilities struct {
	// baseURL is the address of the endpoint that was tried.
	// +kubebuilder:validation:MaxLength=2048
	// +required
	BaseURL string `json:"baseURL"`
	// model is the model that was tried.
	// +kubebuilder:validation:MaxLength=256
	// +required
	Model string `json:"model"`
	// supported lists the operations that worked.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	// +optional
	Supported []string `json:"supported,omitempty"`
	// ignored lists the settings that the endpoint accepts, but that have no effect. A run that sets one is refused.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	// +optional
	Ignored []string `json:"ignored,omitempty"`
	// unsupported lists the settings that the endpoint refuses, or implements differently.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	// +optional
	Unsupported []string `json:"unsupported,omitempty"`
	// checkedAt is the time at which the run's own first check ended. It is absent if all results come from sharedFrom.
	// +optional
	CheckedAt *metav1.Time `json:"checkedAt,omitempty"`
	// clientVersion is the version of the learner that checked.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ClientVersion string `json:"clientVersion,omitempty"`
	// connection is a digest of the other inputs of a check: tinker without baseURL, trainModules, and the variables of
	// the learner's pod.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Connection string `json:"connection,omitempty"`
	// sharedFrom is the check that found the results that this run did not find itself: a check of another run of the
	// namespace or, with tinker.endpointRef, of the broker.
	// +optional
	SharedFrom *SharedCheck `json:"sharedFrom,omitempty"`
}

// SharedCheck is the check of another run, or of the broker of a TinkerEndpoint.
type SharedCheck struct {
	// name is the name of that run, or of the TinkerEndpoint.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// checkedAt is the time at which the check ended.
	// +required
	CheckedAt metav1.Time `json:"checkedAt"`
}
