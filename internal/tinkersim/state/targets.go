// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
)

// noTarget is the token of a cell that asks for nothing.
const noTarget = -1

// targetsOf returns the tokens of target_prompt_logprobs in the order of the tensor's elements, without the cells that
// ask for nothing. Row i of the tensor is about position i+1 of the prompt.
func targetsOf(tensor *tinker.Tensor, prompt int) ([]model.Target, error) {
	if tensor == nil {
		return nil, nil
	}
	if err := tensor.Validate(); err != nil {
		return nil, badRequest("target_prompt_logprobs: %s", err)
	}
	if tensor.DType != tinker.Int64 || len(tensor.Shape) != 2 || tensor.Shape[0] != int64(prompt-1) {
		return nil, badRequest("target_prompt_logprobs must be int64 with the shape [%d, K]", prompt-1)
	}
	var targets []model.Target
	row := 0
	for i, token := range tensor.Int {
		if tensor.Sparse == nil {
			row = i / int(tensor.Shape[1])
		} else {
			for tensor.Sparse.Rows[row+1] <= int64(i) {
				row++
			}
		}
		switch {
		case token == noTarget:
		case token < 0 || token > 1<<31-1:
			return nil, badRequest("target_prompt_logprobs: %d is not a token", token)
		default:
			targets = append(targets, model.Target{Position: row + 1, Token: int32(token)})
		}
	}
	return targets, nil
}

// scored returns the log-probabilities in the shape and layout of the targets, with 0 for cells that ask for nothing;
// nil if there are no targets.
func scored(targets *tinker.Tensor, logprobs []float32) *tinker.Tensor {
	if targets == nil {
		return nil
	}
	out := tinker.Tensor{DType: tinker.Float32, Shape: targets.Shape, Sparse: targets.Sparse,
		Float: make([]float32, len(targets.Int))}
	for i, token := range targets.Int {
		if token != noTarget {
			out.Float[i], logprobs = logprobs[0], logprobs[1:]
		}
	}
	return &out
}
