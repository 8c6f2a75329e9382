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
	// server is an image that runs beside every worker.
	// +optional
	Server *ORSServer `json:"server,omitempty"`
}

// ORSServer is an image that serves the Open Reward Standard.
type ORSServer struct {
	environment.ServerImage `json:",inline"`
	Container               `json:",inline"`
}

// Execution is where the functions of an environment run: in one container beside each worker, or in pods of their own,
// which have no key, no token of the run and no service account. Programs that a policy wrote run in another container,
// without the environment variables that come from Secrets and ConfigMaps.
// +kubebuilder:validation:XValidation:rule="!has(self.pods) || (has(self.placement) && self.placement == 'Pods')",message="pods needs placement: Pods: add it, or remove pods"
// +kubebuilder:validation:XValidation:rule="!has(self.placement) || self.placement != 'Pods' || !has(self.requirements) || self.requirements.size() == 0 || (has(self.pods) && has(self.pods.network) && self.pods.network == 'Open')",message="requirements need pods.network: Open with placement Pods, since pods install them from a package index, which no NetworkPolicy can name: set it, or name an image that has the packages"
// +kubebuilder:validation:XValidation:rule="!has(self.pods) || !has(self.pods.warmPoolRef) || !(has(self.image) || has(self.requirements) || has(self.index) || has(self.env) || has(self.resources))",message="image, requirements, index, env and resources of the pods of a warm pool are those of its SandboxTemplate: remove them, or pods.warmPoolRef"
type Execution struct {
	environment.FunctionImage `json:",inline"`
	Container                 `json:",inline"`
	// pods are the pods of placement Pods. Unset fields default to podOverrides[target=Workers] of the run.
	// +optional
	Pods *ExecutionPods `json:"pods,omitempty"`
}

// ExecutionPods are pods that run the functions of an environment for all workers of a run.
// +kubebuilder:validation:XValidation:rule="!has(self.warmPoolRef) || !(has(self.runtimeClassName) || has(self.nodeSelector) || has(self.tolerations) || has(self.affinity))",message="runtimeClassName, nodeSelector, tolerations and affinity of the pods of a warm pool are those of its SandboxTemplate: remove them, or warmPoolRef"
type ExecutionPods struct {
	// replicas is the number of pods of each run. A call may go to any of them. An episode of interaction.python stays in
	// one pod.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +kubebuilder:default=1
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// warmPoolRef takes the pods from a SandboxWarmPool of kubernetes-sigs/agent-sandbox in the namespace. The run has a
	// SandboxClaim for each replica, except while it is suspended or over. The pods have the image, the resources and the
	// scheduling of the pool's SandboxTemplate, which must contain the runner. The chart's value
	// environmentServers.warmPools lets the operator make claims.
	// +optional
	WarmPoolRef *WarmPoolRef `json:"warmPoolRef,omitempty"`
	// network limits the connections of the pods. None adds a NetworkPolicy that permits no connection, not even to a name
	// service. Open adds no such policy. The network of the cluster has to enforce NetworkPolicies. In both cases only
	// workers of the run may connect to the pods. Pods of a warm pool may also connect to the destinations that the
	// network policy of its SandboxTemplate permits.
	// +kubebuilder:default=None
	// +optional
	Network environment.PodNetwork `json:"network,omitempty"`
	// runtimeClassName is the runtime class of the pods, such as gvisor or nvidia. The pod of the probe has it as well.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	RuntimeClassName string `json:"runtimeClassName,omitempty"`
	// nodeSelector is the node selector of the pods, and of the pod of the probe.
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// tolerations are the tolerations of the pods, and of the pod of the probe.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// affinity is the affinity of the pods. Defaults to a preference for different nodes.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
}

// WarmPoolRef names a SandboxWarmPool in the environment's own namespace.
type WarmPoolRef struct {
	// name is the name of the SandboxWarmPool.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=240
	// +required
	Name string `json:"name"`
}

// Container has the settings that the containers of servers and of functions share.
type Container struct {
	// env are environment variables of the container.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`
	// resources are the resources of the container. All functions share the container's memory limit, which defaults to
	// 1Gi for functions.
	// +kubebuilder:validation:XValidation:rule="!has(self.claims)",message="claims refers to resourceClaims, which containers of environments do not have: remove it, and request devices by limits"
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`
}
