// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package environment

// PythonEpisodes is code in Python that plays episodes: it asks the policy, and returns the reward of the episode. The
// code defines async def episode(row, policy, seed), or a class Environment with start(row, seed) and step(reply). An
// exception is a fault of its episode, and never a reward of 0.
type PythonEpisodes struct {
	Source `json:",inline"`
	// function is the name of the function or class. Defaults to episode, or to Environment if the code has no episode.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z_][A-Za-z0-9_]*$')",message="must be a name in Python: letters, digits and _, and no digit first"
	// +optional
	Function string `json:"function,omitempty"`
	// roles are the roles of conversations, as the code passes them to policy.chat. Defaults to one role, which has no
	// name.
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.all(role, role.matches('^[a-z][a-z0-9_-]*$'))",message="a role has at most 63 lower-case letters, digits, hyphens and underscores, and begins with a letter"
	// +optional
	Roles []string `json:"roles,omitempty"`
	// processes is the number of processes that run episodes beside each worker.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +kubebuilder:default=2
	// +optional
	Processes int32 `json:"processes,omitempty"`
	// concurrency is the number of episodes that a process plays at once.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	// +kubebuilder:default=64
	// +optional
	Concurrency int32 `json:"concurrency,omitempty"`
}
