// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package environment

// FunctionImage has the image of the functions of an environment, and says where it runs.
type FunctionImage struct {
	// image has the interpreter, python3, and the packages that the functions import. Defaults to the chart's
	// images.python.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Image string `json:"image,omitempty"`
	// placement is where the container runs: Worker, beside each worker.
	// +kubebuilder:default=Worker
	// +optional
	Placement Placement `json:"placement,omitempty"`
	// isolation is the least isolation of programs that a policy wrote.
	// +optional
	Isolation *Isolation `json:"isolation,omitempty"`
}

// Placement is where functions run.
// +kubebuilder:validation:Enum=Worker
type Placement string

// PlacementWorker runs functions beside each worker.
const PlacementWorker Placement = "Worker"
