// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Capabilities are the operations that an endpoint supports with a base model, found by capability checks. Losses are
// loss.NAME and loss.NAME.SETTING, settings of the optimizer adam.NAME, as the Tinker API spells them. The support of a
// feature in none of the lists is unknown.
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
	// ignored lists the settings that the endpoint accepts and that have no effect. A run that sets one is
	// refused.
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
	// checkedAt is the time at which the first check by the run itself ended. It is absent if all results were shared.
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
	// sharedFrom is the check with the results that this run did not find itself: the check of another run of the
	// namespace or, with tinker.endpointRef, the check of the broker.
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
