// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import "fmt"

// Divergence compares the log-probs of sampled tokens under two policies, pooled over all action tokens of
// a batch: not a mean of means.
type Divergence struct {
	// V1 is the mean of sampled minus trained log-probs, which may be negative; V2 is half the mean of the square of
	// this difference.
	V1, V2 float64
	// Entropy is minus the mean of the sampled log-probs.
	Entropy float64
	// Tokens counts the tokens that were compared. If there are none, the other fields are 0 and mean nothing.
	Tokens int
}

// Diverge compares datums with the log-probs that the training forward pass gave for their targets, a
// slice for each datum, in order.
func Diverge(datums []Datum, trained [][]float32) (Divergence, error) {
	if len(trained) != len(datums) {
		return Divergence{}, fmt.Errorf("comparing log-probs: %d replies for %d datums", len(trained), len(datums))
	}
	var sum Divergence
	for i, d := range datums {
		if len(trained[i]) != len(d.Targets) {
			return Divergence{}, fmt.Errorf("comparing log-probs: datum %d has %d for %d targets", i, len(trained[i]),
				len(d.Targets))
		}
		for t, action := range d.Mask {
			if !action {
				continue
			}
			sampled := float64(d.Logprobs[t])
			difference := sampled - float64(trained[i][t])
			sum.V1 += difference
			sum.V2 += float64(difference * difference)
			sum.Entropy -= sampled
			sum.Tokens++
		}
	}
	if sum.Tokens == 0 {
		return Divergence{}, nil
	}
	n := float64(sum.Tokens)
	return Divergence{V1: sum.V1 / n, V2: sum.V2 / n / 2, Entropy: sum.Entropy / n, Tokens: sum.Tokens}, nil
}

// Metrics returns the divergence under the names of a step's metrics; nothing when no token was compared.
func (d Divergence) Metrics() map[string]float64 {
	if d.Tokens == 0 {
		return map[string]float64{}
	}
	return map[string]float64{
		"optim/kl_sample_train_v1": d.V1,
		"optim/kl_sample_train_v2": d.V2,
		"optim/entropy":            d.Entropy,
	}
}
