// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"fmt"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/models"
)

// FormatError says that the format of a run's model has no place for what an environment needs.
type FormatError struct {
	// Environment is the name of the RewardEnvironment, and Renderer that of the format.
	Environment, Renderer string
}

// Error implements error.
func (e *FormatError) Error() string {
	return fmt.Sprintf("RewardEnvironment %q declares tools to the model, which the format %s of the run's model cannot do: set "+
		"interaction.toolUse.dialect of the RewardEnvironment to HermesJSON or QwenXML, or model.renderer of the run to a format that has tools", e.Environment, e.Renderer)
}

// checkTools returns a *FormatError for an environment whose tools the model's format cannot declare. The probe played one
// task: where others have tools, the workers find that out.
func checkTools(run *v1alpha1.TrainingRun, pins Pins, renderer string) error {
	if models.DeclaresTools(renderer) {
		return nil
	}
	for _, name := range References(run) {
		if pin := pins[name]; pin.DeclaresTools && pin.Definition.Interaction.Dialect() == "" {
			return &FormatError{Environment: name, Renderer: renderer}
		}
	}
	return nil
}
