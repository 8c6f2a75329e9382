// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"math"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model/transformer"
)

// Adapter is a LoRA adapter with its gradient and Adam state: Tinker calls it a model. Its methods must not run
// concurrently; different adapters of one base may.
type Adapter struct {
	base   *BaseModel
	config Config
	parts  []part

	adamState
	steps uint64 // optimizer steps so far

	merged *transformer.Params // base and adapter
	full   []float32           // scratch: gradient of the merged parameters
}

// part is the adapter of one matrix: A starts at a in the flat vectors, B at b and ends at end.
type part struct {
	block     transformer.Block
	a, b, end int
}

// initialSpread is the bound of A's first elements times the root of the input dimension. It sets
// how fast an adapter learns at a given rate.
const initialSpread = 4

// NewAdapter returns an adapter that does not change the base yet: A is random and B zero. It is
// deterministic in cfg, which must be valid.
func NewAdapter(base *BaseModel, cfg Config) *Adapter {
	a := newAdapter(base, cfg)
	for i, p := range a.parts {
		bound := initialSpread / math.Sqrt(float64(p.block.Rows))
		for j := range a.params[p.a:p.b] {
			u := uniform(uint64(cfg.Seed), i, j)
			a.params[p.a+j] = float32((2*u - 1) * bound)
		}
	}
	a.merge()
	return a
}

// newAdapter returns an adapter of zeros.
func newAdapter(base *BaseModel, cfg Config) *Adapter {
	a := &Adapter{base: base, config: cfg}
	n := 0
	for _, block := range cfg.blocks() {
		p := part{block: block, a: n, b: n + block.Rows*cfg.Rank}
		p.end = p.b + cfg.Rank*block.Cols
		a.parts, n = append(a.parts, p), p.end
	}
	a.params, a.gradient = make([]float32, n), make([]float32, n)
	a.first, a.second = make([]float32, n), make([]float32, n)
	a.full = make([]float32, transformer.Size)
	a.merged = transformer.NewParams(make([]float32, transformer.Size))
	return a
}

// Config returns the configuration that the adapter was made with.
func (a *Adapter) Config() Config { return a.config }

// Steps returns the number of optimizer steps in the Adam state.
func (a *Adapter) Steps() uint64 { return a.steps }

// Parameters returns a copy of the matrices.
func (a *Adapter) Parameters() []float32 { return slices.Clone(a.params) }

// SetParameters replaces the matrices by the matrices of an adapter of the same configuration. The gradient and the
// Adam state stay as they are.
func (a *Adapter) SetParameters(params []float32) {
	copy(a.params, params)
	a.merge()
}

// Forward computes log-probabilities and loss without changing the gradient. Errors are UserErrors or the
// context's error.
func (a *Adapter) Forward(ctx context.Context, batch []Datum, loss Loss) (Result, error) {
	return a.run(ctx, batch, loss, false)
}

// ForwardBackward computes log-probabilities and loss and adds to the gradient. Errors are
// UserErrors or the context's error; after an error the gradient is unchanged.
func (a *Adapter) ForwardBackward(ctx context.Context, batch []Datum, loss Loss) (Result, error) {
	r, err := a.run(ctx, batch, loss, true)
	if err != nil {
		return Result{}, err
	}
	for _, p := range a.parts {
		a.lowRank(p).AddGradient(a.gradient[p.a:p.b], a.gradient[p.b:p.end], a.full)
	}
	return r, nil
}

// ScaleGradient multiplies the accumulated gradient.
func (a *Adapter) ScaleGradient(by float32) {
	for i := range a.gradient {
		a.gradient[i] *= by
	}
}

// run computes a batch; backward leaves its gradient in a.full.
func (a *Adapter) run(ctx context.Context, batch []Datum, loss Loss, backward bool) (Result, error) {
	p, err := a.base.prepare(batch, loss)
	if err != nil {
		return Result{}, err
	}
	if p.bySequence {
		// The windows of a sequence are visited separately, but the loss of each window needs the ratio of the whole
		// sequence.
		measured, err := a.pass(ctx, p, false)
		if err != nil {
			return Result{}, err
		}
		p.setRatios(measured.Logprobs)
	}
	return a.pass(ctx, p, backward)
}

// pass computes a prepared batch once.
func (a *Adapter) pass(ctx context.Context, p prepared, backward bool) (Result, error) {
	o := newObjective(p, backward)
	job := transformer.Job{Params: a.merged, Sequences: p.sequences, Visit: o.visit, Wanted: a.config.wanted()}
	if backward {
		job.Gradient = a.full
	}
	if err := a.base.engine.Run(ctx, job); err != nil {
		return Result{}, err
	}
	return o.result(), nil
}

// merge recomputes base plus adapter, always from the base so that it depends on params alone.
func (a *Adapter) merge() {
	copy(a.merged.Flat(), a.base.params.Flat())
	for _, p := range a.parts {
		a.lowRank(p).AddTo(a.merged.Flat())
	}
	a.merged.PrepareBackward()
}

func (a *Adapter) lowRank(p part) transformer.LowRank {
	return transformer.LowRank{
		At:    p.block,
		A:     a.params[p.a:p.b],
		B:     a.params[p.b:p.end],
		Rank:  a.config.Rank,
		Scale: Alpha / float32(a.config.Rank),
	}
}
