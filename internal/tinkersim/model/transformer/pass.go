// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transformer

// Pass computes the network over a few sequences at once, forward and backward. It keeps its
// buffers between uses. It is not safe for concurrent use.
type Pass struct {
	plan      rowLayout
	states    [Layers]state
	attention attention

	x         matrix // residual stream
	last      matrix // its norm
	lastScale []float32
	logits    matrix
	dx        matrix
	dwide     matrix // gradient of matrices of Hidden columns
	dnarrow   matrix // gradient of matrices of Width columns
	dqkv      matrix
}

// state has the values of a layer that the backward pass needs.
type state struct {
	first, second           matrix // inputs of attention and MLP
	firstScale, secondScale []float32
	qkv, attended           matrix
	hidden, squared         matrix
}

// Forward computes the states of the sequences and, from them, the logits of every token.
func (p *Pass) Forward(w *Params, sequences [][]int32) {
	p.States(w, sequences)
	p.logits = resize(p.logits, p.x.rows, Vocab)
	mul(p.logits, p.last, unembedOf(w.flat), 0)
}

// States computes the states of the sequences without logits.
func (p *Pass) States(w *Params, sequences [][]int32) {
	p.plan.reset()
	for i, s := range sequences {
		p.plan.add(s, sequences[max(i-1, 0)])
	}
	n := len(p.plan.tokens)
	p.x = resize(p.x, n, Width)
	for i, token := range p.plan.tokens {
		copy(p.x.row(i), w.flat[embedAt+int(token)*Width:])
	}
	for l := range Layers {
		p.forwardLayer(layerOf(w.flat, l), &p.states[l])
	}
	p.last = resize(p.last, n, Width)
	p.lastScale = resizeSlice(p.lastScale, n)
	normalize(p.last, p.x, p.lastScale)
}

func (p *Pass) forwardLayer(w layer, s *state) {
	s.resize(p.x.rows)
	normalize(s.first, p.x, s.firstScale)
	mul(s.qkv, s.first, w.qkv, 0)
	table := rotaryTable()
	for i, position := range p.plan.positions {
		table.rotate(s.qkv.row(i), int(position), 1)
	}
	p.attention.forward(&p.plan, s)
	mul(p.x, s.attended, w.out, 1)
	normalize(s.second, p.x, s.secondScale)
	mul(s.hidden, s.second, w.up, 0)
	squareReLU(s.squared, s.hidden)
	mul(p.x, s.squared, w.down, 1)
}

// Rows returns the rows of sequence i in order of its tokens. Sequences may share rows.
func (p *Pass) Rows(i int) []int32 { return p.plan.rowsOf(i) }

// Logits returns the logits of a row. Before Backward, the caller replaces them with the gradient
// of the loss with respect to them, for every row.
func (p *Pass) Logits(row int32) []float32 { return p.logits.row(int(row)) }

// RowCount returns the number of rows of the last Forward.
func (p *Pass) RowCount() int { return len(p.plan.tokens) }

// Backward adds the gradients of the wanted matrices to the flat vector grad. The logits must
// have been replaced by their gradients; w must have been prepared with PrepareBackward.
func (p *Pass) Backward(w *Params, grad []float32, wanted Wanted) {
	if wanted.Unembed {
		mulT(unembedOf(grad), p.last, p.logits, 1)
	}
	if !wanted.belowUnembed() {
		return
	}
	p.resizeGradients()
	mul(p.dnarrow, p.logits, w.transposedUnembed(), 0)
	clear(p.dx.data)
	normalizeBack(p.dx, p.dnarrow, p.last, p.lastScale)
	for l := Layers - 1; l >= 0; l-- {
		transposed, into, s := transposedLayerOf(w.transposed, l), layerOf(grad, l), &p.states[l]
		p.backwardMLP(transposed, into, s, wanted.MLP)
		p.backwardAttention(transposed, into, s, wanted.Attention)
		if l > 0 || wanted.Embed {
			mul(p.dnarrow, p.dqkv, transposed.qkv, 0)
			normalizeBack(p.dx, p.dnarrow, s.first, s.firstScale)
		}
	}
	if wanted.Embed {
		p.backwardEmbed(grad)
	}
}

func (p *Pass) backwardMLP(transposed, into layer, s *state, wanted bool) {
	if wanted {
		mulT(into.down, s.squared, p.dx, 1)
	}
	mul(p.dwide, p.dx, transposed.down, 0)
	squareReLUBack(p.dwide, s.hidden)
	if wanted {
		mulT(into.up, s.second, p.dwide, 1)
	}
	mul(p.dnarrow, p.dwide, transposed.up, 0)
	normalizeBack(p.dx, p.dnarrow, s.second, s.secondScale)
}

func (p *Pass) backwardAttention(transposed, into layer, s *state, wanted bool) {
	if wanted {
		mulT(into.out, s.attended, p.dx, 1)
	}
	mul(p.dnarrow, p.dx, transposed.out, 0)
	clear(p.dqkv.data)
	p.attention.backward(&p.plan, s, p.dqkv, p.dnarrow)
	table := rotaryTable()
	for i, position := range p.plan.positions {
		table.rotate(p.dqkv.row(i), int(position), -1)
	}
	if wanted {
		mulT(into.qkv, s.first, p.dqkv, 1)
	}
}

func (p *Pass) backwardEmbed(grad []float32) {
	for i, token := range p.plan.tokens {
		addTo(grad[embedAt+int(token)*Width:], p.dx.row(i))
	}
}

func (p *Pass) resizeGradients() {
	n := p.x.rows
	p.dx = resize(p.dx, n, Width)
	p.dwide = resize(p.dwide, n, Hidden)
	p.dnarrow = resize(p.dnarrow, n, Width)
	p.dqkv = resize(p.dqkv, n, 3*Width)
}

func (s *state) resize(n int) {
	s.first, s.second = resize(s.first, n, Width), resize(s.second, n, Width)
	s.firstScale, s.secondScale = resizeSlice(s.firstScale, n), resizeSlice(s.secondScale, n)
	s.qkv = resize(s.qkv, n, 3*Width)
	s.attended = resize(s.attended, n, Width)
	s.hidden, s.squared = resize(s.hidden, n, Hidden), resize(s.squared, n, Hidden)
}

// resize returns a matrix of n rows over the same memory if that is large enough.
func resize(m matrix, n, cols int) matrix {
	return matrix{data: resizeSlice(m.data, n*cols), rows: n, cols: cols, stride: cols}
}

func resizeSlice(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n, n+n/4)
	}
	return s[:n]
}
