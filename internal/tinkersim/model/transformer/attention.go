// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transformer

// scoreScale is one over the square root of the head's width.
const scoreScale = 0.25

// attention computes causal attention over the paths of a plan. Its buffers hold one sequence's
// keys and values, gathered along the path.
type attention struct {
	keys, values   matrix // length by Width, or Width by length when transposed
	scores         matrix // gradient of probabilities and then of scores
	dkeys, dvalues matrix
}

// forward fills s.attended and s.probs from s.qkv.
func (a *attention) forward(p *plan, s *state) {
	s.probs = resizeSlice(s.probs, p.probCount())
	at := 0
	for i, where := range p.paths {
		own := where.length - where.shared
		if own == 0 {
			continue
		}
		rows := p.rowsOf(i)
		a.gatherTransposed(&a.keys, s.qkv, rows, Width)
		a.gather(&a.values, s.qkv, rows, 2*Width)
		first := int(rows[where.shared])
		for head := 0; head < Width; head += headWidth {
			probs := dense(s.probs[at:], own, where.length)
			at += own * where.length
			query := s.qkv.slice(first, own).columns(head, headWidth)
			mul(probs, query, a.keys.slice(head, headWidth), 0)
			for j := range own {
				softmax(probs.row(j), where.shared+j+1, scoreScale)
			}
			mul(s.attended.slice(first, own).columns(head, headWidth), probs, a.values.columns(head, headWidth), 0)
		}
	}
}

// backward adds to dqkv, which is zero at first, the gradient of attention given that of s.attended.
func (a *attention) backward(p *plan, s *state, dqkv, dattended matrix) {
	at := 0
	for i, where := range p.paths {
		own := where.length - where.shared
		if own == 0 {
			continue
		}
		rows := p.rowsOf(i)
		a.gather(&a.keys, s.qkv, rows, Width)
		a.gatherTransposed(&a.values, s.qkv, rows, 2*Width)
		a.dkeys = resize(a.dkeys, where.length, Width)
		a.dvalues = resize(a.dvalues, where.length, Width)
		first := int(rows[where.shared])
		for head := 0; head < Width; head += headWidth {
			probs := dense(s.probs[at:], own, where.length)
			at += own * where.length
			a.backwardHead(head, probs, headGradient{
				query:     s.qkv.slice(first, own).columns(head, headWidth),
				dquery:    dqkv.slice(first, own).columns(head, headWidth),
				dattended: dattended.slice(first, own).columns(head, headWidth),
			})
		}
		a.scatter(dqkv, rows)
	}
}

// headGradient is one head's part of a sequence's own rows.
type headGradient struct {
	query, dquery, dattended matrix
}

func (a *attention) backwardHead(head int, probs matrix, g headGradient) {
	a.scores = resize(a.scores, probs.rows, probs.cols)
	mulT(a.dvalues.columns(head, headWidth), probs, g.dattended, 0)
	mul(a.scores, g.dattended, a.values.slice(head, headWidth), 0)
	for j := range probs.rows {
		softmaxBack(a.scores.row(j), probs.row(j))
	}
	mul(g.dquery, a.scores, a.keys.columns(head, headWidth), 0)
	mulT(a.dkeys.columns(head, headWidth), a.scores, g.query, 0)
}

// softmaxBack turns the gradient of probabilities into that of the unscaled scores.
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

// gatherTransposed does the same and transposes.
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

// probCount is the number of attention probabilities of a layer.
func (p *plan) probCount() int {
	n := 0
	for _, where := range p.paths {
		n += Heads * (where.length - where.shared) * where.length
	}
	return n
}
