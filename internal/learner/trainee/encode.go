// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainee

import (
	"iter"

	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// outputLogprobs is the output of a pass that every loss returns.
const outputLogprobs = "logprobs"

// encode yields training data in the API's form for a loss. It converts each datum only when the datum is taken,
// because in this form a batch takes several times the memory of its groups. Data with weights are for the loss
// cross_entropy. Only the loss gspo uses the mask.
func encode(datums []rl.Datum, loss tinker.LossName) iter.Seq[tinker.Datum] {
	return func(yield func(tinker.Datum) bool) {
		for _, d := range datums {
			if !yield(encodeDatum(d, loss)) {
				return
			}
		}
	}
}

func encodeDatum(d rl.Datum, loss tinker.LossName) tinker.Datum {
	targets := make([]int64, len(d.Targets))
	for i, token := range d.Targets {
		targets[i] = int64(token)
	}
	inputs := map[string]tinker.Tensor{tinker.InputTargetTokens: tinker.Ints(targets)}
	if d.Weights != nil {
		inputs[tinker.InputWeights] = tinker.Floats(d.Weights)
	} else {
		inputs[tinker.InputLogprobs] = tinker.Floats(d.Logprobs)
		inputs[tinker.InputAdvantages] = tinker.Floats(d.TargetAdvantages())
	}
	if loss == tinker.LossGSPO {
		inputs[tinker.InputSequenceRatioMask] = tinker.Floats(ones(d.Mask))
	}
	return tinker.Datum{ModelInput: tinker.Text(d.Tokens), LossFnInputs: inputs}
}

// ones returns 1 for each true value.
func ones(mask []bool) []float32 {
	values := make([]float32, len(mask))
	for i, is := range mask {
		if is {
			values[i] = 1
		}
	}
	return values
}

// weighted compensates for a server that averages the gradients of each sequence over its tokens, and the gradients of
// an optimizer step over its sequences. It multiplies the advantages, or weights, by both numbers, so that gradients
// add up: all losses that a run on such a server may have are proportional to them.
func (m *Model) weighted(data iter.Seq[tinker.Datum], sequences int) iter.Seq[tinker.Datum] {
	if !m.averages {
		return data
	}
	return func(yield func(tinker.Datum) bool) {
		for d := range data {
			scale(d, float32(sequences))
			if !yield(d) {
				return
			}
		}
	}
}

// scale multiplies the advantages, or weights, of a datum by the number of sequences and by the number of its tokens.
func scale(d tinker.Datum, sequences float32) {
	factor := sequences * float32(d.LossFnInputs[tinker.InputTargetTokens].Len())
	for _, name := range []string{tinker.InputAdvantages, tinker.InputWeights} {
		input, ok := d.LossFnInputs[name]
		if !ok {
			continue
		}
		scaled := make([]float32, len(input.Float))
		for i, v := range input.Float {
			scaled[i] = v * factor
		}
		input.Float = scaled
		d.LossFnInputs[name] = input
	}
}

// logprobsOf reads the log-probs of the targets out of a pass over the given number of datums. An endpoint may return
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
