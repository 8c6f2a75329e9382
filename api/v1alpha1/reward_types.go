// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reward is how an episode is rewarded.
// +kubebuilder:validation:XValidation:rule="has(self.exactMatch)",message="give exactly one of exactMatch"
type Reward struct {
	// ExactMatch compares with the field answer.
	// +optional
	ExactMatch *ExactMatch `json:"exactMatch,omitempty"`
}

// ExactMatch compares with the field answer.
type ExactMatch struct{}
