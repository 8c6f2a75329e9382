// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model/transformer"
)

// TestModules adds the exported matrices to the base model, as other programs do, and compares the result with the
// weights that the adapter trains with.
func TestModules(t *testing.T) {
	blocks := map[string]transformer.Block{"lm_head": transformer.UnembedBlock()}
	for i, block := range transformer.AttentionBlocks() {
		name := []string{"q_proj", "k_proj", "v_proj", "o_proj"}[i%4]
		blocks[[]string{"model.layers.0.self_attn.", "model.layers.1.self_attn."}[i/4]+name] = block
	}
	for i, block := range transformer.MLPBlocks() {
		name := []string{"up_proj", "down_proj"}[i%2]
		blocks[[]string{"model.layers.0.mlp.", "model.layers.1.mlp."}[i/2]+name] = block
	}
	for name, config := range map[string]Config{
		"all":       testConfig,
		"attention": {Rank: 2, Seed: 1, TrainAttention: true},
		"others":    {Rank: 3, Seed: 2, TrainMLP: true, TrainUnembed: true},
	} {
		a := trained(config)
		flat := append([]float32{}, a.base.params.Flat()...)
		for _, m := range a.Modules() {
			block, ok := blocks[m.Name]
			if !ok || m.Inputs != block.Rows || m.Outputs != block.Cols {
				t.Fatalf("%s: module %s of %d inputs and %d outputs is unknown", name, m.Name, m.Inputs, m.Outputs)
			}
			for in := range m.Inputs {
				for out := range m.Outputs {
					sum := float32(0)
					for r := range config.Rank {
						sum += m.B[out*config.Rank+r] * m.A[r*m.Inputs+in]
					}
					flat[block.Offset+in*block.Stride+out] += Alpha / float32(config.Rank) * sum
				}
			}
		}
		for i, want := range a.merged.Flat() {
			if math.Abs(float64(flat[i]-want)) > 1e-5 {
				t.Fatalf("%s: parameter %d is %v, want %v", name, i, flat[i], want)
			}
		}
	}
}
