// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
)

// ORSEnvironment is an environment of an Open Reward Standard server, which has the tasks, the tools and the rewards.
// +kubebuilder:validation:XValidation:rule="(has(self.name)?1:0)+(has(self.url)?1:0)+(has(self.server)?1:0)==1",message="give exactly one of name (a hosted environment), url (a running server) and server (an image)"
type ORSEnvironment struct {
	environment.ORS `json:",inline"`
	// server is an image that is run beside every worker.
	// +optional
	Server *ORSServer `json:"server,omitempty"`
}

// ORSServer is an image that serves the Open Reward Standard.
type ORSServer struct {
	environment.ServerImage `json:",inline"`
	Container               `json:",inline"`
}

// Execution is where the functions of an environment run: in one container beside each worker, which has no key, no
// token and no service account. What a policy wrote runs in another one, which has none of the variables that come from
// Secrets and ConfigMaps either.
type Execution struct {
	environment.FunctionImage `json:",inline"`
	Container                 `json:",inline"`
}

// Container has the settings of the container of an environment that are the same for servers and functions.
type Container struct {
	// env are environment variables of the container.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`
	// resources are the resources of the container. The processes of all functions share its limit of memory, which
	// defaults to 1Gi for functions.
	// +kubebuilder:validation:XValidation:rule="!has(self.claims)",message="claims refers to resourceClaims, which containers of environments do not have: remove it, and request devices by limits"
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`
}
