// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/models"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// checkTools checks that the model's format can declare the tools of the environments. The probe played one task: where
// others have tools, the workers find that out.
func checkTools(run *v1alpha1.TrainingRun, pins Pins, renderer string) error {
	if models.DeclaresTools(renderer) {
		return nil
	}
	for _, name := range References(run) {
		if pin := pins[name]; pin.DeclaresTools && pin.Definition.Interaction.Dialect() == "" {
			return unacceptable(problem.UnsupportedByFormat,
				"RewardEnvironment %q declares tools, and the format is %s", name, renderer)
		}
	}
	return nil
}
