// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model/transformer"
)

// MaxRank is the highest rank of an adapter.
const MaxRank = 128

// Alpha is LoRA's scale, as in Tinker: the change of a matrix is Alpha/rank·A·B.
const Alpha = 32

// Config describes an adapter.
type Config struct {
	// Rank is the inner dimension of the LoRA matrices, 1 to MaxRank.
	Rank int
	// Seed decides the initial weights.
	Seed int64
	// TrainAttention, TrainMLP and TrainUnembed say which matrices have an adapter; at least one must.
	TrainAttention, TrainMLP, TrainUnembed bool
}

// Validate returns a UserError if the configuration is invalid.
func (c Config) Validate() error {
	if c.Rank < 1 || c.Rank > MaxRank {
		return userErrorf("the LoRA rank %d is not between 1 and %d", c.Rank, MaxRank)
	}
	if !c.TrainAttention && !c.TrainMLP && !c.TrainUnembed {
		return userErrorf("one of attention, MLP and unembedding must be trained")
	}
	return nil
}

// blocks returns the matrices that have an adapter.
func (c Config) blocks() []transformer.Block {
	var all []transformer.Block
	if c.TrainAttention {
		all = slices.Concat(all, transformer.AttentionBlocks())
	}
	if c.TrainMLP {
		all = slices.Concat(all, transformer.MLPBlocks())
	}
	if c.TrainUnembed {
		all = append(all, transformer.UnembedBlock())
	}
	return all
}

func (c Config) wanted() transformer.Wanted {
	return transformer.Wanted{Attention: c.TrainAttention, MLP: c.TrainMLP, Unembed: c.TrainUnembed}
}
