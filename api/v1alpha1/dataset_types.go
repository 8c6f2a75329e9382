// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Dataset of tasks.
// +kubebuilder:validation:XValidation:rule="has(self.arithmetic)",message="give exactly one of arithmetic"
type Dataset struct {
	// Arithmetic generates sums.
	// +optional
	Arithmetic *ArithmeticData `json:"arithmetic,omitempty"`
}

// ArithmeticData generates sums; a hash of the operands decides whether a sum is in train or in test.
type ArithmeticData struct {
	// MaxOperand is the greatest operand of a sum; the least is 0.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9999
	// +kubebuilder:default=99
	// +optional
	MaxOperand *int32 `json:"maxOperand,omitempty"`
}
