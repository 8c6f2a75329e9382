// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import "math"

// The names of the losses' inputs.
const (
	inputTargets    = "target_tokens"
	inputWeights    = "weights"
	inputLogprobs   = "logprobs"
	inputAdvantages = "advantages"
	inputClipLow    = "clip_low_threshold"
	inputClipHigh   = "clip_high_threshold"
	inputRatioMask  = "sequence_ratio_mask"
	settingBeta     = "beta"
)

// element holds the inputs of a loss for one target, besides its log-probability.
type element struct {
	weight    float64 // cross_entropy
	sampled   float64 // log-probability when it was sampled
	advantage float64
	low, high float64 // bounds of the ratio
	beta      float64 // dro
	// mask is the weight of the token in the ratio of its sequence, and sequence is that ratio (gspo).
	mask, sequence float64
}

// lossKind is the definition of a loss. The loss of a batch is the sum over all its targets.
type lossKind struct {
	// required and optional are the inputs besides target_tokens.
	required, optional []string
	// defaults are the settings.
	defaults map[string]float64
	// many allows several targets for each position.
	many bool
	// bySequence makes prepared.setRatios compute the ratio of each sequence before value is called.
	bySequence bool
	// value returns the loss of a target and its derivative by the log-probability.
	value func(logprob float64, e element) (loss, slope float64)
}

var lossKinds = map[string]lossKind{
	"cross_entropy": {
		optional: []string{inputWeights},
		many:     true,
		value:    crossEntropy,
	},
	"importance_sampling": {
		required: []string{inputLogprobs, inputAdvantages},
		value:    importanceSampling,
	},
	"ppo": {
		required: []string{inputLogprobs, inputAdvantages},
		optional: []string{inputClipLow, inputClipHigh},
		defaults: map[string]float64{inputClipLow: 0.8, inputClipHigh: 1.2},
		value:    ppo,
	},
	"cispo": {
		required: []string{inputLogprobs, inputAdvantages},
		optional: []string{inputClipLow, inputClipHigh},
		defaults: map[string]float64{inputClipLow: 0, inputClipHigh: 4},
		value:    cispo,
	},
	"gspo": {
		required:   []string{inputLogprobs, inputAdvantages},
		optional:   []string{inputRatioMask, inputClipLow, inputClipHigh},
		defaults:   map[string]float64{inputClipLow: 0.8, inputClipHigh: 1.2},
		bySequence: true,
		value:      gspo,
	},
	"dro": {
		required: []string{inputLogprobs, inputAdvantages},
		defaults: map[string]float64{settingBeta: 0.05},
		value:    dro,
	},
}

func crossEntropy(logprob float64, e element) (loss, slope float64) {
	return -e.weight * logprob, -e.weight
}

func importanceSampling(logprob float64, e element) (loss, slope float64) {
	surrogate := e.ratio(logprob) * e.advantage
	return -surrogate, -surrogate
}

// ppo takes the smaller of the plain and the clipped surrogate; the clipped one has slope zero.
func ppo(logprob float64, e element) (loss, slope float64) {
	return e.surrogate(e.ratio(logprob))
}

// gspo is ppo with the ratio of the sequence, the geometric mean of the ratios of its tokens. As in GSPO-token, a
// token's slope depends on its own log-probability alone.
func gspo(_ float64, e element) (loss, slope float64) {
	return e.surrogate(e.sequence)
}

func (e element) surrogate(ratio float64) (loss, slope float64) {
	plain, clipped := ratio*e.advantage, e.clip(ratio)*e.advantage
	if plain <= clipped {
		return -plain, -plain
	}
	return -clipped, 0
}

// cispo weights the log-probability by the clipped ratio, which is held constant.
func cispo(logprob float64, e element) (loss, slope float64) {
	slope = -e.clip(e.ratio(logprob)) * e.advantage
	return slope * logprob, slope
}

func dro(logprob float64, e element) (loss, slope float64) {
	shift := logprob - e.sampled
	return -(logprob*e.advantage - e.beta*shift*shift/2), -(e.advantage - e.beta*shift)
}

// ratio returns the probability of the target divided by its probability when it was sampled. Exp2 is plain
// arithmetic on all machines.
func (e element) ratio(logprob float64) float64 {
	return math.Exp2((logprob - e.sampled) * math.Log2E)
}

func (e element) clip(ratio float64) float64 {
	return min(max(ratio, e.low), e.high)
}
