// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"iter"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
)

// MaxCode limits the code of a function, in bytes.
const MaxCode = 64 << 10

// Source is the source of a function's code.
// +kubebuilder:validation:XValidation:rule="[has(self.code), has(self.configMapKeyRef), has(self.module)].filter(x, x).size() == 1",message="give exactly one of code, configMapKeyRef and module"
type Source struct {
	// code is the text of a module in Python.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	Code string `json:"code,omitempty"`
	// configMapKeyRef names the ConfigMap that has the code, at most 64 KiB. Runs keep the code that they start with.
	// +optional
	ConfigMapKeyRef *ref.ConfigMapKey `json:"configMapKeyRef,omitempty"`
	// module is the name of a module that the image of execution has, such as rewards.math. Runs keep the image that the
	// probe had.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z_][A-Za-z0-9_]*([.][A-Za-z_][A-Za-z0-9_]*)*$')",message="must be the name of a module, as import takes it, for example rewards.math"
	// +optional
	Module string `json:"module,omitempty"`
}

// Sources lists the sources of an environment's code, by the paths of its functions.
func Sources(reward *Reward, interaction *Interaction) iter.Seq2[string, *Source] {
	return func(yield func(string, *Source) bool) {
		for at, rule := range reward.Rules() {
			if rule.Python != nil && !yield("reward."+at+"python", &rule.Python.Source) {
				return
			}
		}
		if interaction == nil {
			return
		}
		if python := interaction.Python; python != nil && !yield("interaction.python", &python.Source) {
			return
		}
		if agent := interaction.Agent; agent != nil && agent.Python != nil {
			yield("interaction.agent.python", &agent.Python.Source)
		}
	}
}
