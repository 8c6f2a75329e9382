// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import "github.com/tinker-operator/tinker-operator/internal/tinker"

// averaged returns data whose gradient is the gradient of the average over each sequence's tokens, or over its
// weights. It divides advantages and weights, to which the losses are proportional. The model reports invalid data.
func averaged(data []tinker.Datum) []tinker.Datum {
	out := make([]tinker.Datum, len(data))
	for i, datum := range data {
		tokens := float32(datum.LossFnInputs[tinker.InputTargetTokens].Len())
		if weights, ok := datum.LossFnInputs[tinker.InputWeights]; ok {
			tokens = 0
			for _, w := range weights.Float {
				tokens += w
			}
		}
		inputs := make(map[string]tinker.Tensor, len(datum.LossFnInputs))
		for name, tensor := range datum.LossFnInputs {
			if name == tinker.InputAdvantages || name == tinker.InputWeights {
				tensor = divided(tensor, tokens)
			}
			inputs[name] = tensor
		}
		out[i] = tinker.Datum{ModelInput: datum.ModelInput, LossFnInputs: inputs}
	}
	return out
}

func divided(t tinker.Tensor, by float32) tinker.Tensor {
	values := make([]float32, len(t.Float))
	for i, v := range t.Float {
		values[i] = v / max(by, 1e-9)
	}
	t.Float = values
	return t
}
