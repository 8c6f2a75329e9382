// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model/transformer"
)

// objective computes the loss of a prepared batch from logits, and its gradient if wanted. Datums
// are independent of each other, so its methods may run concurrently for different ones.
type objective struct {
	prepared
	backward bool
	logprobs [][]float32
	losses   []float64
}

func newObjective(p prepared, backward bool) *objective {
	o := &objective{
		prepared: p,
		backward: backward,
		logprobs: make([][]float32, len(p.datums)),
		losses:   make([]float64, len(p.datums)),
	}
	for i, d := range p.datums {
		o.logprobs[i] = make([]float32, len(d.targets))
	}
	return o
}

// pull is the slope of the loss by one logit, apart from what the row's normalizer adds.
type pull struct {
	row, target int32
	slope       float32
}

// visit computes the datums from first to before next, which the pass holds.
func (o *objective) visit(p *transformer.Pass, first, next int) {
	norms := make([]float64, p.RowCount())
	for row := range norms {
		norms[row] = transformer.LogSumExp(p.Logits(int32(row)))
	}
	var pulls []pull
	for i := first; i < next; i++ {
		pulls = o.visitDatum(p, i, p.Rows(i-first), norms, pulls)
	}
	if o.backward {
		setGradient(p, norms, pulls)
	}
}

// visitDatum computes one datum and appends its pulls. Log-probabilities are computed for every
// target, also where nothing pulls.
func (o *objective) visitDatum(p *transformer.Pass, i int, rows []int32, norms []float64, pulls []pull) []pull {
	d := o.datums[i]
	for position, row := range rows {
		logits := p.Logits(row)
		for k := position * d.perPosition; k < (position+1)*d.perPosition; k++ {
			target := d.targets[k]
			logprob := float64(logits[target]) - norms[row]
			o.logprobs[i][k] = float32(logprob)
			loss, slope := o.value(logprob, d.elements[k])
			o.losses[i] += loss
			if slope != 0 {
				pulls = append(pulls, pull{row: row, target: target, slope: float32(slope)})
			}
		}
	}
	return pulls
}

// setGradient replaces the logits by the gradient: a pull on a log-probability pulls its own logit
// and pushes all logits of the row by their probabilities.
func setGradient(p *transformer.Pass, norms []float64, pulls []pull) {
	totals := make([]float32, len(norms))
	for _, u := range pulls {
		totals[u.row] += u.slope
	}
	for row, total := range totals {
		logits := p.Logits(int32(row))
		if total == 0 {
			clear(logits)
			continue
		}
		norm := float32(norms[row])
		for j, v := range logits {
			logits[j] = -total * transformer.Exp32(v-norm)
		}
	}
	for _, u := range pulls {
		p.Logits(u.row)[u.target] += u.slope
	}
}

// result returns the outcome. The losses are added in the order of the datums.
func (o *objective) result() Result {
	r := Result{Logprobs: o.logprobs, Shapes: make([][]int, len(o.datums))}
	sum := 0.0
	for i, d := range o.datums {
		r.Shapes[i] = d.shape
		sum += o.losses[i]
	}
	r.Metrics = map[string]float64{"loss:sum": sum}
	return r
}
