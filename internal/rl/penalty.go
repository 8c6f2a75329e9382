// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"errors"
	"fmt"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
)

// Penalise adds the KL penalty to the advantages of a step's data. It returns the mean, over all sampled tokens of the
// data, of the difference between the log-probability under the policy that sampled a token and that under the
// reference.
//
// A token's penalty is the coefficient times that mean less the token's own difference: penalties are centred over the
// whole batch, so that they sum up to 0. With a discount, each token also gets the penalties of the sampled tokens
// after it in its datum, times the discount to the power of their distance. The arithmetic is the same as in
// incorporate_kl_penalty in tinker-cookbook, except that with a discount the latter also changes the advantages of
// tokens that were not sampled. Sums are taken in float64, and advantages are rounded to float32 once.
func Penalise(datums []Datum, kl algorithm.KL) (mean float64, err error) {
	sum, actions := 0.0, 0
	for _, d := range datums {
		if len(d.ReferenceLogprobs) != len(d.Targets) {
			return 0, fmt.Errorf("penalising divergence: slot %d has %d log-probabilities of the reference for %d tokens",
				d.Slot, len(d.ReferenceLogprobs), len(d.Targets))
		}
		for i, sampled := range d.Mask {
			if sampled {
				sum += d.difference(i)
				actions++
			}
		}
	}
	if actions == 0 {
		return 0, errors.New("penalising divergence: the data have no sampled token")
	}
	mean = sum / float64(actions)
	for i := range datums {
		datums[i].Spread()
		datums[i].penalise(kl, mean)
	}
	return mean, nil
}

// difference returns the log-probability of a target under the policy less the one under the reference.
func (d Datum) difference(i int) float64 {
	return float64(d.Logprobs[i]) - float64(d.ReferenceLogprobs[i])
}

// penalise adds the penalties to the datum's own advantages.
func (d Datum) penalise(kl algorithm.KL, mean float64) {
	d.Credit(kl.Discount, func(i int) float64 { return float64(kl.Coefficient * (mean - d.difference(i))) })
}

// Credit adds to the advantage of each sampled token its own credit, and the credit of each later sampled token in
// the datum times the discount to the power of their distance. The datum has to be spread. Advantages are rounded
// once. own has to round its products by a conversion to float64, so that the result is the same on every machine.
func (d Datum) Credit(discount float64, own func(i int) float64) {
	later := 0.0
	for i := len(d.Mask) - 1; i >= 0; i-- {
		later = float64(discount * later)
		if d.Mask[i] {
			later += own(i)
			d.Advantages[i] = float32(float64(d.Advantages[i]) + later)
		}
	}
}
