// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package peft gives downloaded adapters the names and shapes that the Python package PEFT and servers of models
// expect.
//
// Hosted Tinker calls the output layer unembed_tokens, and has one tensor with three dimensions for a matrix of all
// experts of a layer. The facts are from build_lora_adapter of tinker-cookbook 0.5.8. If the input and the output layer
// share their matrix, that function adapts the input layer. The adapter was trained on the output layer alone, which is
// lm_head in either case, so it is lm_head here.
package peft

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/safetensors"
)

const (
	// prefix begins the name of each tensor of an adapter.
	prefix = "base_model.model."
	// The output layer at Tinker and in the package transformers.
	unembedding, outputLayer = "model.unembed_tokens", "lm_head"
	// experts is a part of the names of the matrices of experts.
	experts = ".experts."
)

// matrices are the ends of the names of a layer's two matrices, A and B: the change of the layer's weights is B A.
var matrices = []string{".lora_A.weight", ".lora_B.weight"}

// expertLayers are the layers of an expert: Tinker's name, and the name in transformers.
var expertLayers = map[string]string{"w1": "gate_proj", "w2": "down_proj", "w3": "up_proj"}

// isForeign reports whether tensors have names or shapes that PEFT does not know.
func isForeign(tensors map[string]safetensors.Tensor) bool {
	for name, t := range tensors {
		if len(t.Shape) == 3 || strings.Contains(name, unembedding) {
			return true
		}
	}
	return false
}

// convert returns the tensors by the names that PEFT has for them, with the offsets at which the source has their
// elements, and the names of the layers that they adapt, without their paths, in order.
func convert(source map[string]safetensors.Tensor) (map[string]safetensors.Tensor, []string, error) {
	out, layers := map[string]safetensors.Tensor{}, map[string]bool{}
	// In order, so that one file always has the same error.
	for _, name := range slices.Sorted(maps.Keys(source)) {
		t := source[name]
		layer, matrix, err := split(name)
		if err != nil {
			return nil, nil, err
		}
		if !strings.Contains(layer, experts) {
			if len(t.Shape) != 2 {
				return nil, nil, fmt.Errorf("tensor %q has the shape %v, not that of a matrix", name, t.Shape)
			}
			out[prefix+layer+matrix], layers[lastOf(layer)] = t, true
			continue
		}
		of, err := divide(name, source)
		if err != nil {
			return nil, nil, err
		}
		before, after, _ := strings.Cut(layer, experts)
		projection, known := expertLayers[after]
		if !known {
			return nil, nil, fmt.Errorf("tensor %q belongs to the unknown layer %q of experts", name, after)
		}
		for i, part := range of {
			out[fmt.Sprintf("%s%s%s%d.%s%s", prefix, before, experts, i, projection, matrix)], layers[projection] = part, true
		}
	}
	if len(out) == 0 {
		return nil, nil, fmt.Errorf("the adapter has no matrices")
	}
	return out, slices.Sorted(maps.Keys(layers)), nil
}

// split divides the name of a tensor into the name of the layer in transformers and the name of the matrix.
func split(name string) (layer, matrix string, err error) {
	for _, matrix := range matrices {
		if layer, found := strings.CutSuffix(name, matrix); found {
			layer = strings.TrimPrefix(layer, prefix)
			if layer == unembedding {
				layer = outputLayer
			}
			return layer, matrix, nil
		}
	}
	return "", "", fmt.Errorf("tensor %q is not a matrix of an adapter, whose name ends in %s", name,
		strings.Join(matrices, " or "))
}

func lastOf(layer string) string { return layer[strings.LastIndexByte(layer, '.')+1:] }

// divide returns the matrix of each expert. A tensor with a single matrix is shared by all experts, and the other
// tensor of the pair then has one matrix for each expert. Tensors without elements stand for layers that the model
// lacks.
func divide(name string, source map[string]safetensors.Tensor) ([]safetensors.Tensor, error) {
	other := strings.Replace(name, matrices[0], matrices[1], 1)
	if other == name {
		other = strings.Replace(name, matrices[1], matrices[0], 1)
	}
	t, pair := source[name], source[other]
	switch {
	case len(t.Shape) != 3 || len(pair.Shape) != 3:
		return nil, fmt.Errorf("tensors %q and %q have the shapes %v and %v, not three dimensions each", name, other, t.Shape,
			pair.Shape)
	case t.Size() == 0 && pair.Size() == 0:
		return nil, nil
	case t.Shape[0] != pair.Shape[0] && t.Shape[0] != 1 && pair.Shape[0] != 1:
		return nil, fmt.Errorf("tensors %q and %q have %d and %d experts", name, other, t.Shape[0], pair.Shape[0])
	case t.Shape[0] == 0 || t.Size()%int64(t.Shape[0]) != 0:
		return nil, fmt.Errorf("tensor %q of the shape %v has %d bytes", name, t.Shape, t.Size())
	}
	size := t.Size() / int64(t.Shape[0])
	parts := make([]safetensors.Tensor, max(t.Shape[0], pair.Shape[0]))
	for i := range parts {
		begin := t.Offsets[0] + size*int64(min(i, t.Shape[0]-1))
		parts[i] = safetensors.Tensor{Type: t.Type, Shape: t.Shape[1:], Offsets: [2]int64{begin, begin + size}}
	}
	return parts, nil
}
