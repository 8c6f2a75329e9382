// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package supervised

import (
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/finite"
)

// MeanNLL returns the mean negative log-likelihood of the targets of datums, weighted by their weights, from the
// log-probability of each target. With PerToken weights it is the figure per token. With PerExample weights it is the
// mean of the examples' figures, which tinker-cookbook calls train_mean_nll and test/nll.
func MeanNLL(datums []Datum, logprobs [][]float32) (float64, error) {
	if len(logprobs) != len(datums) {
		return 0, fmt.Errorf("computing the negative log-likelihood: there are log-probabilities of %d datums, and %d datums",
			len(logprobs), len(datums))
	}
	sum, total := 0.0, 0.0
	for i, d := range datums {
		if len(logprobs[i]) != len(d.Weights) {
			return 0, fmt.Errorf("computing the negative log-likelihood: datum %d has %d log-probabilities for %d targets",
				i, len(logprobs[i]), len(d.Weights))
		}
		for j, weight := range d.Weights {
			if weight == 0 {
				continue
			}
			logprob := float64(logprobs[i][j])
			if !finite.Is(logprob) {
				return 0, fmt.Errorf("computing the negative log-likelihood: the log-probability of target %d of datum %d is %v",
					j, i, logprob)
			}
			sum -= float64(float64(weight) * logprob)
			total += float64(weight)
		}
	}
	if total == 0 {
		return 0, fmt.Errorf("computing the negative log-likelihood: no target of %d datums has weight", len(datums))
	}
	return sum / total, nil
}
