// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transformer

// The shape of the network.
const (
	// Vocab is the number of tokens.
	Vocab = 260
	// MaxContext is the longest sequence.
	MaxContext = 4096
	// Layers is the number of layers.
	Layers = 2
	// Width is the size of the residual stream.
	Width = 64
	// Heads is the number of attention heads.
	Heads = 4
	// Hidden is the size of the layer between the matrices of an MLP.
	Hidden = 272

	headWidth = Width / Heads
)

// The offsets of the matrices in the flat vector of parameters.
const (
	embedAt   = 0
	layersAt  = embedAt + Vocab*Width
	qkvAt     = 0
	outAt     = qkvAt + 3*Width*Width
	upAt      = outAt + Width*Width
	downAt    = upAt + Width*Hidden
	layerSize = downAt + Hidden*Width
	unembedAt = layersAt + Layers*layerSize

	// Size is the number of parameters.
	Size = unembedAt + Width*Vocab
)

// Block is a matrix within the flat vector of parameters, row-major: input dimension by output.
type Block struct {
	// Offset is the index of the first element.
	Offset int
	// Rows and Cols are the dimensions.
	Rows, Cols int
	// Stride is the distance between rows.
	Stride int
}

// AttentionBlocks returns the query, key, value and output matrices of all layers.
func AttentionBlocks() []Block {
	var all []Block
	for l := range Layers {
		at := layersAt + l*layerSize
		for part := range 3 {
			all = append(all, Block{Offset: at + qkvAt + part*Width, Rows: Width, Cols: Width, Stride: 3 * Width})
		}
		all = append(all, Block{Offset: at + outAt, Rows: Width, Cols: Width, Stride: Width})
	}
	return all
}

// MLPBlocks returns the matrices of the MLPs of all layers.
func MLPBlocks() []Block {
	var all []Block
	for l := range Layers {
		at := layersAt + l*layerSize
		all = append(all,
			Block{Offset: at + upAt, Rows: Width, Cols: Hidden, Stride: Hidden},
			Block{Offset: at + downAt, Rows: Hidden, Cols: Width, Stride: Width})
	}
	return all
}

// UnembedBlock returns the matrix that turns the last state into logits.
func UnembedBlock() Block {
	return Block{Offset: unembedAt, Rows: Width, Cols: Vocab, Stride: Vocab}
}

// EmbedBlock returns the token embeddings, one row for each token.
func EmbedBlock() Block {
	return Block{Offset: embedAt, Rows: Vocab, Cols: Width, Stride: Width}
}

// Wanted says for which matrices a backward pass computes the gradient.
type Wanted struct {
	Embed, Attention, MLP, Unembed bool
}

// belowUnembed reports whether the pass must compute gradients below the last matrix.
func (w Wanted) belowUnembed() bool { return w.Embed || w.Attention || w.MLP }

// layer is the matrices of one layer, or of its transposed copies or gradients.
type layer struct {
	qkv, out, up, down matrix
}

// layerOf returns layer l of a flat vector.
func layerOf(flat []float32, l int) layer { return layerIn(flat, l, dense) }

// transposedLayerOf returns layer l of a flat vector of transposed matrices.
func transposedLayerOf(flat []float32, l int) layer {
	return layerIn(flat, l, func(data []float32, rows, cols int) matrix { return dense(data, cols, rows) })
}

func layerIn(flat []float32, l int, matrixOf func(data []float32, rows, cols int) matrix) layer {
	at := flat[layersAt+l*layerSize:]
	return layer{
		qkv:  matrixOf(at[qkvAt:], Width, 3*Width),
		out:  matrixOf(at[outAt:], Width, Width),
		up:   matrixOf(at[upAt:], Width, Hidden),
		down: matrixOf(at[downAt:], Hidden, Width),
	}
}

// unembedOf returns the last matrix of a flat vector.
func unembedOf(flat []float32) matrix { return dense(flat[unembedAt:], Width, Vocab) }
