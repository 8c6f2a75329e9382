// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import corev1 "k8s.io/api/core/v1"

// Execution is where the functions of an environment run: in one container beside each worker, which has no key, no
// token and no service account.
type Execution struct {
	// image has the interpreter, python3, and the packages that the functions import. Defaults to the chart's
	// images.python.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Image string `json:"image,omitempty"`
	// env are environment variables of the functions.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`
	// resources are the resources of the container. Its limit of memory, which defaults to 1Gi, is shared by the
	// processes of all functions.
	// +kubebuilder:validation:XValidation:rule="!has(self.claims)",message="claims refers to resourceClaims, which functions do not have: remove it"
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`
	// placement is where the container runs: Worker, beside each worker.
	// +kubebuilder:default=Worker
	// +optional
	Placement Placement `json:"placement,omitempty"`
}

// Placement is where functions run.
// +kubebuilder:validation:Enum=Worker
type Placement string

// PlacementWorker runs functions beside each worker.
const PlacementWorker Placement = "Worker"
