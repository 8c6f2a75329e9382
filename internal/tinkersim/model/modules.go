// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model/transformer"
)

// Module is the adapter of one matrix in the form of other programs, which keep matrices transposed: output
// dimension by input.
type Module struct {
	// Name is the name of the matrix: model.layers.0.self_attn.q_proj, for example.
	Name string
	// Inputs and Outputs are the dimensions of the matrix.
	Inputs, Outputs int
	// A is rank by Inputs and B is Outputs by rank, both row-major.
	A, B []float32
}

// Modules returns the adapters of all matrices that are trained.
func (a *Adapter) Modules() []Module {
	names := a.config.moduleNames()
	all := make([]Module, len(a.parts))
	for i, p := range a.parts {
		all[i] = Module{
			Name: names[i], Inputs: p.block.Rows, Outputs: p.block.Cols,
			A: transposed(a.params[p.a:p.b], p.block.Rows, a.config.Rank),
			B: transposed(a.params[p.b:p.end], a.config.Rank, p.block.Cols),
		}
	}
	return all
}

// moduleNames returns the names of the matrices in the order of blocks.
func (c Config) moduleNames() []string {
	var all []string
	layers := func(names ...string) {
		for layer := range transformer.Layers {
			for _, name := range names {
				all = append(all, fmt.Sprintf("model.layers.%d.%s", layer, name))
			}
		}
	}
	if c.TrainAttention {
		layers("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj")
	}
	if c.TrainMLP {
		layers("mlp.up_proj", "mlp.down_proj")
	}
	if c.TrainUnembed {
		all = append(all, "lm_head")
	}
	return all
}

// transposed returns the transposed copy of a row-major matrix.
func transposed(m []float32, rows, cols int) []float32 {
	out := make([]float32, len(m))
	for i := range rows {
		for j := range cols {
			out[j*rows+i] = m[i*cols+j]
		}
	}
	return out
}

// Matrix is a matrix of the network in the form of other programs: output dimension by input, and embeddings token by
// width.
type Matrix struct {
	// Name is the name of the matrix: model.layers.0.self_attn.q_proj, for example.
	Name       string
	Rows, Cols int
	// Values are row-major.
	Values []float32
}

// Matrices returns all matrices of the base model.
func (b *BaseModel) Matrices() []Matrix {
	flat, all := b.params.Flat(), Config{TrainAttention: true, TrainMLP: true, TrainUnembed: true}
	embed := transformer.EmbedBlock()
	matrices := []Matrix{{
		Name: "model.embed_tokens", Rows: embed.Rows, Cols: embed.Cols,
		Values: slices.Clone(flat[embed.Offset : embed.Offset+embed.Rows*embed.Cols]),
	}}
	names := all.moduleNames()
	for i, block := range all.blocks() {
		m := Matrix{Name: names[i], Rows: block.Cols, Cols: block.Rows, Values: make([]float32, 0, block.Rows*block.Cols)}
		for col := range block.Cols {
			for row := range block.Rows {
				m.Values = append(m.Values, flat[block.Offset+row*block.Stride+col])
			}
		}
		matrices = append(matrices, m)
	}
	return matrices
}
