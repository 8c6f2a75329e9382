// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package supervised

import (
	"errors"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/finite"
)

// NLL adds up the negative log-likelihood of targets. With PerToken weights its mean is the figure per token. With
// PerExample weights it is the mean of the examples' figures, which tinker-cookbook calls train_mean_nll and test/nll.
type NLL struct {
	sum, weight float64
	// Tokens are the targets that have weight.
	Tokens int64
}

// Add adds the targets of a datum, from their weights and log-probabilities.
func (n *NLL) Add(weights, logprobs []float32) error {
	if len(logprobs) != len(weights) {
		return fmt.Errorf("computing the negative log-likelihood: there are %d log-probabilities for %d targets",
			len(logprobs), len(weights))
	}
	for j, weight := range weights {
		if weight == 0 {
			continue
		}
		logprob := float64(logprobs[j])
		if !finite.Is(logprob) {
			return fmt.Errorf("computing the negative log-likelihood: the log-probability of target %d is %v", j, logprob)
		}
		n.sum -= float64(float64(weight) * logprob)
		n.weight += float64(weight)
		n.Tokens++
	}
	return nil
}

// Mean returns the mean over the targets, weighted by their weights; ok is false if none has weight.
func (n *NLL) Mean() (mean float64, ok bool) {
	if n.weight == 0 {
		return 0, false
	}
	return n.sum / n.weight, true
}

// MeanNLL returns the mean negative log-likelihood of the targets of datums.
func MeanNLL(datums []Datum, logprobs [][]float32) (float64, error) {
	if len(logprobs) != len(datums) {
		return 0, fmt.Errorf("computing the negative log-likelihood: there are log-probabilities of %d datums, and %d datums",
			len(logprobs), len(datums))
	}
	var nll NLL
	for i, d := range datums {
		if err := nll.Add(d.Weights, logprobs[i]); err != nil {
			return 0, fmt.Errorf("datum %d: %w", i, err)
		}
	}
	mean, ok := nll.Mean()
	if !ok {
		return 0, errors.New("computing the negative log-likelihood: no target has weight")
	}
	return mean, nil
}

// Join adds the targets of another sum.
func (n *NLL) Join(other NLL) {
	n.sum, n.weight, n.Tokens = n.sum+other.sum, n.weight+other.weight, n.Tokens+other.Tokens
}
