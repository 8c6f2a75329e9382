// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"encoding/json"
	"math"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// lossOutput is the output of a pass that has the loss of each token.
const lossOutput = "elementwise_loss"

// token has the values on which the loss of a token depends.
type token struct{ logprob, sampled, advantage, ratio, clipped float64 }

// lossOfToken are the losses of a token.
var lossOfToken = map[tinker.LossName]func(t token) float64{
	tinker.LossCrossEntropy:       func(t token) float64 { return -t.advantage * t.logprob },
	tinker.LossImportanceSampling: func(t token) float64 { return -t.ratio * t.advantage },
	tinker.LossPPO:                func(t token) float64 { return -min(t.ratio*t.advantage, t.clipped*t.advantage) },
	tinker.LossCISPO:              func(t token) float64 { return -t.clipped * t.logprob * t.advantage },
}

// pass is a pass in flight, with its data as the client sent them.
type pass struct{ input tinker.ForwardBackwardInput }

// addLosses adds the losses of the tokens to the outputs of a pass, which have the log-probabilities.
func (p pass) addLosses(result object) {
	var outputs []object
	if json.Unmarshal(result["loss_fn_outputs"], &outputs) != nil || len(outputs) != len(p.input.Data) {
		return
	}
	for i, output := range outputs {
		var logprobs tinker.Tensor
		if json.Unmarshal(output[tinker.InputLogprobs], &logprobs) != nil {
			return
		}
		output.set(lossOutput, tinker.Floats(p.losses(p.input.Data[i], logprobs.Float), logprobs.Shape...))
	}
	result.set("loss_fn_outputs", outputs)
}

// losses returns the losses of the tokens of a datum.
func (p pass) losses(datum tinker.Datum, logprobs []float32) []float32 {
	inputs := func(name string, i int) float64 {
		if values := datum.LossFnInputs[name].Float; i < len(values) {
			return float64(values[i])
		}
		return 0
	}
	advantages := tinker.InputAdvantages
	if p.input.LossFn == tinker.LossCrossEntropy {
		advantages = tinker.InputWeights
	}
	losses := make([]float32, len(logprobs))
	for i, logprob := range logprobs {
		t := token{logprob: float64(logprob), sampled: inputs(tinker.InputLogprobs, i), advantage: inputs(advantages, i)}
		t.ratio = math.Exp(t.logprob - t.sampled)
		t.clipped = min(max(t.ratio, p.input.LossFnConfig["clip_low_threshold"]), p.input.LossFnConfig["clip_high_threshold"])
		losses[i] = float32(lossOfToken[p.input.LossFn](t))
	}
	return losses
}
