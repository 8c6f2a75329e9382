// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package environment

// Python is a function in Python that scores replies, with or without async: reward(row, reply) returns a finite
// number, a bool, or a dict with reward, optionally correct (a bool), and metrics by name; rewards(row, replies)
// returns a list of these for a group. An exception is a fault of its episode, and never a reward of 0. SetDefaults has
// the defaults of its fields.
type Python struct {
	Source `json:",inline"`
	// function is the name of the function. Defaults to reward, or to rewards if the code has no reward.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z_][A-Za-z0-9_]*$')",message="must be a name in Python: letters, digits and _, and no digit first"
	// +optional
	Function string `json:"function,omitempty"`
	// processes is the number of processes that run the function beside each worker. Defaults to 2.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +optional
	Processes int32 `json:"processes,omitempty"`
	// concurrency is the number of calls of an async function that a process runs at once. Defaults to 64.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	// +optional
	Concurrency int32 `json:"concurrency,omitempty"`
	// timeoutSeconds limits the time of a call. Defaults to 60.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +optional
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
	// onError is the reward of an episode for which the function raises an exception or returns no reward. If it is
	// absent, such an episode is a fault and is left out.
	// +optional
	OnError *float64 `json:"onError,omitempty"`
}
