// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transformer

// scoreScale is one over the square root of the head's width.
const scoreScale = 0.25

// blockRows is the number of rows of a sequence that attend together. Only the probabilities of one block are kept, so
// that memory grows with a sequence's length and not with its square: the backward pass computes them again.
const blockRows = 64

// attention computes causal attention over the paths of a rowLayout. Its buffers hold one sequence's
// keys and values, gathered along the path, and the buffers of one block.
type attention struct {
	keys, values                     matrix // length by Width
	keysTransposed, valuesTransposed matrix // Width by length
	probs, scores                    matrix // of one block and head: probabilities, gradient of the scores
	dkeys, dvalues                   matrix
}

// block is some of a sequence's own rows.
type block struct {
	first, rows int // in the pass
	// before is the number of tokens of the sequence before the first row, and seen the number that the last row sees.
	before, seen int
}

// blocksOf cuts the own rows of a path into blocks; rows are the rows of the whole path.
func blocksOf(where path, rows []int32) []block {
	var all []block
	for at := where.shared; at < where.length; at += blockRows {
		n := min(blockRows, where.length-at)
		all = append(all, block{first: int(rows[at]), rows: n, before: at, seen: at + n})
	}
	return all
}

// of returns the block's rows of one head's columns from the given one.
func (b block) of(m matrix, column int) matrix {
	return m.slice(b.first, b.rows).columns(column, headWidth)
}

// forward fills s.attended from s.qkv.
func (a *attention) forward(p *rowLayout, s *state) {
	for i, where := range p.paths {
		if where.length == where.shared {
			continue
		}
		rows := p.rowsOf(i)
		a.gatherTransposed(&a.keysTransposed, s.qkv, rows, Width)
		a.gather(&a.values, s.qkv, rows, 2*Width)
		for _, b := range blocksOf(where, rows) {
			for head := 0; head < Width; head += headWidth {
				a.attend(s, b, head)
				mul(b.of(s.attended, head), a.probs, a.values.slice(0, b.seen).columns(head, headWidth), 0)
			}
		}
	}
}

// attend computes the probabilities of a block and head.
func (a *attention) attend(s *state, b block, head int) {
	a.probs = resize(a.probs, b.rows, b.seen)
	mul(a.probs, b.of(s.qkv, head), a.keysTransposed.slice(head, headWidth).columns(0, b.seen), 0)
	for j := range b.rows {
		softmax(a.probs.row(j), b.before+j+1, scoreScale)
	}
}

// backward adds the gradient of attention to dqkv, which is zero at first, given the gradient of s.attended.
func (a *attention) backward(p *rowLayout, s *state, dqkv, dattended matrix) {
	for i, where := range p.paths {
		if where.length == where.shared {
			continue
		}
		rows := p.rowsOf(i)
		a.gather(&a.keys, s.qkv, rows, Width)
		a.gatherTransposed(&a.keysTransposed, s.qkv, rows, Width)
		a.gatherTransposed(&a.valuesTransposed, s.qkv, rows, 2*Width)
		a.dkeys, a.dvalues = resize(a.dkeys, where.length, Width), resize(a.dvalues, where.length, Width)
		clear(a.dkeys.data)
		clear(a.dvalues.data)
		for _, b := range blocksOf(where, rows) {
			for head := 0; head < Width; head += headWidth {
				a.attend(s, b, head)
				a.backwardBlock(b, head, b.of(s.qkv, head), b.of(dqkv, head), b.of(dattended, head))
			}
		}
		a.scatter(dqkv, rows)
	}
}

// backwardBlock computes dquery and adds to the gradients of keys and values, given the gradient of the attended
// values. a.probs must hold the probabilities of the block and head.
func (a *attention) backwardBlock(b block, head int, query, dquery, dattended matrix) {
	a.scores = resize(a.scores, b.rows, b.seen)
	mulT(a.dvalues.slice(0, b.seen).columns(head, headWidth), a.probs, dattended, 1)
	mul(a.scores, dattended, a.valuesTransposed.slice(head, headWidth).columns(0, b.seen), 0)
	for j := range b.rows {
		softmaxBack(a.scores.row(j), a.probs.row(j))
	}
	mul(dquery, a.scores, a.keys.slice(0, b.seen).columns(head, headWidth), 0)
	mulT(a.dkeys.slice(0, b.seen).columns(head, headWidth), a.scores, query, 1)
}

// softmaxBack turns the gradient of probabilities into the gradient of the unscaled scores.
func softmaxBack(d, probs []float32) {
	var dot float32
	for j, v := range probs {
		dot += float32(v * d[j])
	}
	for j, v := range probs {
		d[j] = float32(v*(d[j]-dot)) * scoreScale
	}
}

// gather copies Width columns from the given one, along the rows of a path.
func (a *attention) gather(to *matrix, qkv matrix, rows []int32, column int) {
	*to = resize(*to, len(rows), Width)
	for i, row := range rows {
		copy(to.row(i), qkv.row(int(row))[column:])
	}
}

// gatherTransposed is like gather, but transposes the columns.
func (a *attention) gatherTransposed(to *matrix, qkv matrix, rows []int32, column int) {
	*to = resize(*to, Width, len(rows))
	for i, row := range rows {
		for j, v := range qkv.row(int(row))[column : column+Width] {
			to.data[j*to.stride+i] = v
		}
	}
}

// scatter adds the gradients of keys and values to the rows of a path.
func (a *attention) scatter(dqkv matrix, rows []int32) {
	for i, row := range rows {
		to := dqkv.row(int(row))
		addTo(to[Width:2*Width], a.dkeys.row(i))
		addTo(to[2*Width:], a.dvalues.row(i))
	}
}

func addTo(to, from []float32) {
	for j, v := range from {
		to[j] += v
	}
}
