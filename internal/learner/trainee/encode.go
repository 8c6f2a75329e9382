// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainee

import (
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// outputLogprobs is the output of a pass that every loss returns.
const outputLogprobs = "logprobs"

// encode converts training data to the API's form. The mask is left out, since no loss uses it.
func encode(datums []rl.Datum) []tinker.Datum {
	encoded := make([]tinker.Datum, 0, len(datums))
	for _, d := range datums {
		targets := make([]int64, len(d.Targets))
		for i, token := range d.Targets {
			targets[i] = int64(token)
		}
		encoded = append(encoded, tinker.Datum{
			ModelInput: tinker.Text(d.Tokens),
			LossFnInputs: map[string]tinker.Tensor{
				tinker.InputTargetTokens: tinker.Ints(targets),
				tinker.InputLogprobs:     tinker.Floats(d.Logprobs),
				tinker.InputAdvantages:   tinker.Floats(d.Advantages),
			},
		})
	}
	return encoded
}

// weighted returns the data such that their gradients add up on a server that averages those of each sequence over its
// tokens, and those of an optimizer step over its sequences: advantages are multiplied by both numbers, to which all
// losses that a run on such a server may have are proportional.
func (m *Model) weighted(data []tinker.Datum, sequences int) []tinker.Datum {
	if !m.averages {
		return data
	}
	for _, d := range data {
		factor := float32(sequences) * float32(d.LossFnInputs[tinker.InputTargetTokens].Len())
		advantages := d.LossFnInputs[tinker.InputAdvantages]
		scaled := make([]float32, len(advantages.Float))
		for i, v := range advantages.Float {
			scaled[i] = v * factor
		}
		advantages.Float = scaled
		d.LossFnInputs[tinker.InputAdvantages] = advantages
	}
	return data
}

// logprobsOf reads the log-probs of the targets out of a pass over so many datums. An endpoint may return
// none at all, but not fewer than there are datums.
func logprobsOf(pass tinker.ForwardBackwardResult, datums int) ([][]float32, error) {
	if len(pass.LossFnOutputs) == 0 {
		return nil, nil
	}
	if len(pass.LossFnOutputs) != datums {
		return nil, unclean("%d outputs for %d sequences", len(pass.LossFnOutputs), datums)
	}
	logprobs := make([][]float32, 0, datums)
	for _, output := range pass.LossFnOutputs {
		tensor, err := output[outputLogprobs].Dense()
		if err != nil {
			return nil, unclean("logprobs: %v", err)
		}
		logprobs = append(logprobs, tensor.Float)
	}
	return logprobs, nil
}
