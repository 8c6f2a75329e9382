// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transformer

// Params are the parameters of a network. They must not change while a pass or decoder uses them.
type Params struct {
	flat       []float32
	transposed []float32
}

// NewParams returns the parameters that a flat vector of Size elements describes. The vector is
// kept, not copied.
func NewParams(flat []float32) *Params {
	return &Params{flat: flat[:Size:Size]}
}

// Flat returns the flat vector.
func (p *Params) Flat() []float32 { return p.flat }

// PrepareBackward brings the transposed copies up to date, which backward passes need.
func (p *Params) PrepareBackward() {
	if p.transposed == nil {
		p.transposed = make([]float32, Size)
	}
	for l := range Layers {
		from, to := layerOf(p.flat, l), transposedLayerOf(p.transposed, l)
		transpose(to.qkv, from.qkv)
		transpose(to.out, from.out)
		transpose(to.up, from.up)
		transpose(to.down, from.down)
	}
	transpose(p.transposedUnembed(), unembedOf(p.flat))
}

func (p *Params) transposedUnembed() matrix { return dense(p.transposed[unembedAt:], Vocab, Width) }

func transpose(dst, src matrix) {
	for i := range src.rows {
		for j, v := range src.row(i) {
			dst.data[j*dst.stride+i] = v
		}
	}
}
