// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import "github.com/tinker-operator/tinker-operator/internal/tinkersim/model"

// step makes an optimizer step, with the average of the sequences' gradients if the server averages them.
func (t *trainer) step(params model.AdamParams) (model.OptimResult, error) {
	if !t.models.options.AverageGradients {
		return t.adapter.OptimStep(params)
	}
	if err := params.Validate(); err != nil {
		return model.OptimResult{}, err
	}
	t.adapter.ScaleGradient(1 / float32(max(t.sequences, 1)))
	t.sequences = 0
	return t.adapter.OptimStep(params)
}
