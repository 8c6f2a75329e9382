// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
)

// Datum is one training sequence: position i of Tokens predicts target i.
type Datum struct {
	// Tokens is the model input: at least one token, and no more than the context.
	Tokens []int32
	// Inputs are the inputs of the loss by their Tinker names: target_tokens, weights, logprobs,
	// advantages, sequence_ratio_mask, clip_low_threshold and clip_high_threshold.
	Inputs map[string]Tensor
}

// Tensor is a dense row-major tensor. One of Int and Float holds its elements.
type Tensor struct {
	// Shape is the size of each dimension; when it is empty the tensor has one dimension.
	Shape []int
	// Int holds integer elements.
	Int []int64
	// Float holds real elements.
	Float []float32
}

// shape returns the dimensions, even if Shape is empty.
func (t Tensor) shape() []int {
	if len(t.Shape) > 0 {
		return t.Shape
	}
	return []int{max(len(t.Int), len(t.Float))}
}

// reals returns the elements as real numbers; integers are converted, because clients send whole numbers as integers.
func (t Tensor) reals() []float32 {
	if len(t.Int) == 0 {
		return t.Float
	}
	out := make([]float32, len(t.Int))
	for i, v := range t.Int {
		out[i] = float32(v)
	}
	return out
}

// check checks that the tensor is well formed and has the given shape.
func (t Tensor) check(want []int) error {
	if len(t.Int) > 0 && len(t.Float) > 0 {
		return userErrorf("it has integer and real elements")
	}
	n := 1
	for _, size := range t.shape() {
		if size < 0 {
			return userErrorf("its shape %v has a negative dimension", t.shape())
		}
		n *= size
	}
	if have := max(len(t.Int), len(t.Float)); n != have {
		return userErrorf("its shape %v does not hold %d elements", t.shape(), have)
	}
	if !slices.Equal(t.shape(), want) {
		return userErrorf("its shape is %v, not %v", t.shape(), want)
	}
	return nil
}

// Loss names a loss of the Tinker API and its settings.
type Loss struct {
	// Name is cross_entropy, importance_sampling, ppo, gspo, cispo or dro.
	Name string
	// Config holds the settings that differ from the defaults: clip_low_threshold and
	// clip_high_threshold of ppo and gspo (0.8 and 1.2) and cispo (0 and 4), beta of dro (0.05).
	Config map[string]float64
}

// Result is the result of a forward pass.
type Result struct {
	// Logprobs holds, for each datum, the log-probabilities of its targets, row-major.
	Logprobs [][]float32
	// Shapes holds, for each datum, the shape of its log-probabilities, which is the shape of its targets.
	Shapes [][]int
	// Metrics holds loss:sum, the sum of the loss over tokens and datums.
	Metrics map[string]float64
}

// UserError says that the input is invalid: a repetition will fail again.
type UserError struct {
	// Msg describes the error.
	Msg string
}

// Error returns the message.
func (e *UserError) Error() string { return e.Msg }

func userErrorf(format string, args ...any) error {
	return &UserError{Msg: fmt.Sprintf(format, args...)}
}
