// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package distill is the arithmetic of teachers. A teacher gives each token that the policy sampled
//
//	coefficient * (log p_teacher - log p_policy)
//
// in addition to its advantage, where p_policy is the policy that sampled the token. Unlike the KL penalty of package
// rl, the sum is not centred, so that it does not depend on the other data of a step. The arithmetic is the same as in
// incorporate_kl_penalty in distillation/train_on_policy.py of tinker-cookbook, with one exception: with a discount,
// that function also changes the advantages of tokens that were not sampled.
package distill

import (
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/finite"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// Lesson is a datum and its teacher's log-probabilities.
type Lesson struct {
	Datum rl.Datum
	// Environment names the datum's environment, for metrics.
	Environment string
	// Teacher has the log-probability of each target of the datum under the teacher. Only values of sampled tokens are
	// read.
	Teacher []float32
	// Coefficient weights the teacher. Discount is the share of a token's sum that the token before it gets, per token of
	// distance. Without a discount a token gets only its own sum.
	Coefficient, Discount float64
}

// KL is the divergence of the policy from teachers: the mean of log p_policy - log p_teacher over sampled tokens.
type KL struct {
	Sum    float64
	Tokens int64
}

// Mean returns the mean, or 0 without a token.
func (k KL) Mean() float64 {
	if k.Tokens == 0 {
		return 0
	}
	return k.Sum / float64(k.Tokens)
}

// IsLogprob reports whether a number can be a log-probability, except for rounding.
func IsLogprob(v float32) bool {
	const highest = 1e-3
	return finite.Is(float64(v)) && v <= highest
}

// Teach adds the lessons to the advantages of their datums and returns the divergence from the teachers by
// environment. It fails, and changes no advantage, if a teacher's log-probabilities cannot be right.
func Teach(lessons []Lesson) (map[string]KL, error) {
	byEnvironment := map[string]KL{}
	for i, l := range lessons {
		kl, err := l.divergence()
		if err != nil {
			return nil, fmt.Errorf("teaching datum %d of slot %d: %w", i, l.Datum.Slot, err)
		}
		sum := byEnvironment[l.Environment]
		byEnvironment[l.Environment] = KL{sum.Sum + kl.Sum, sum.Tokens + kl.Tokens}
	}
	for _, l := range lessons {
		l.Datum.Credit(l.Discount, func(i int) float64 { return -float64(l.Coefficient * l.difference(i)) })
	}
	return byEnvironment, nil
}

// difference returns the log-probability of a target under the policy less the one under the teacher.
func (l Lesson) difference(i int) float64 {
	return float64(l.Datum.Logprobs[i]) - float64(l.Teacher[i])
}

// divergence sums up the differences, and checks the teacher's log-probabilities.
func (l Lesson) divergence() (KL, error) {
	if len(l.Teacher) != len(l.Datum.Targets) {
		return KL{}, fmt.Errorf("there are %d log-probabilities of the teacher for %d tokens",
			len(l.Teacher), len(l.Datum.Targets))
	}
	var kl KL
	for i, sampled := range l.Datum.Mask {
		if !sampled {
			continue
		}
		if p := l.Teacher[i]; !IsLogprob(p) {
			return KL{}, fmt.Errorf("the teacher's log-probability of token %d is %v, which is none", i, p)
		}
		kl.Sum += l.difference(i)
		kl.Tokens++
	}
	return kl, nil
}
