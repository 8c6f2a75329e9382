// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model/transformer"
)

// objective computes the loss of a prepared batch from logits, and its gradient if wanted. Sequences
// are independent of each other, so its methods may run concurrently for different ones.
type objective struct {
	prepared
	backward bool
	logprobs [][]float32
	losses   []float64 // of sequences
}

func newObjective(p prepared, backward bool) *objective {
	o := &objective{
		prepared: p,
		backward: backward,
		logprobs: make([][]float32, len(p.datums)),
		losses:   make([]float64, len(p.sequences)),
	}
	for i, d := range p.datums {
		o.logprobs[i] = make([]float32, len(d.targets))
	}
	return o
}

// logitSlope is the derivative of the loss by one logit, without the part of the row's normalizer.
type logitSlope struct {
	row, target int32
	slope       float32
}

// visit computes the sequences from first to before next, which the pass holds.
func (o *objective) visit(p *transformer.Pass, first, next int) {
	norms := make([]float64, p.RowCount())
	for row := range norms {
		norms[row] = transformer.LogSumExp(p.Logits(int32(row)))
	}
	var slopes []logitSlope
	for i := first; i < next; i++ {
		slopes = o.visitSequence(p, i, p.Rows(i-first), norms, slopes)
	}
	if o.backward {
		setGradient(p, norms, slopes)
	}
}

// visitSequence computes the targets of one sequence and appends their slopes. Log-probabilities are
// computed for every target, even if its slope is zero.
func (o *objective) visitSequence(p *transformer.Pass, i int, rows []int32, norms []float64,
	slopes []logitSlope) []logitSlope {
	targets := o.targets[i]
	d := o.datums[targets.datum]
	for _, at := range targets.places {
		logprob := 0.0
		for j, native := range at.native {
			row := rows[at.position+j]
			logprob += float64(p.Logits(row)[native]) - norms[row]
		}
		o.logprobs[targets.datum][at.target] = float32(logprob)
		loss, slope := o.value(logprob, d.elements[at.target])
		o.losses[i] += loss
		if slope == 0 {
			continue
		}
		for j, native := range at.native {
			slopes = append(slopes, logitSlope{row: rows[at.position+j], target: native, slope: float32(slope)})
		}
	}
	return slopes
}

// setGradient replaces the logits by the gradient: the slope of a log-probability is added at its own logit
// and subtracted from all logits of the row in proportion to their probabilities.
func setGradient(p *transformer.Pass, norms []float64, slopes []logitSlope) {
	totals := make([]float32, len(norms))
	for _, u := range slopes {
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
	for _, u := range slopes {
		p.Logits(u.row)[u.target] += u.slope
	}
}

// result returns the outcome. The losses are added in the order of the sequences, which is the order of the datums.
func (o *objective) result() Result {
	r := Result{Logprobs: o.logprobs, Shapes: make([][]int, len(o.datums))}
	sum := 0.0
	for i, d := range o.datums {
		r.Shapes[i] = d.shape
	}
	for _, loss := range o.losses {
		sum += loss
	}
	r.Metrics = map[string]float64{"loss:sum": sum}
	return r
}
