// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transformer

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// Shards is the number of parts that a batch is cut into, whatever the number of CPUs. Each has its
// own gradient and they are added in order, so the bits of the sum do not depend on which goroutine computed a part.
const Shards = 16

// maxRows bounds the rows of one pass, as Chunk does.
const maxRows = 256

// Engine runs passes over batches on all CPUs. It keeps buffers between uses and is safe for
// concurrent use; its zero value is ready.
type Engine struct {
	passes    sync.Pool
	gradients sync.Pool
}

// Job is one batch to compute.
type Job struct {
	// Params are the parameters; for a gradient they must have been prepared with PrepareBackward.
	Params *Params
	// Sequences are the inputs, each of 1 to MaxContext tokens.
	Sequences [][]int32
	// Visit is called after each forward pass, with the sequences from first to before next. For a
	// gradient it must replace the logits by their gradient. It is called concurrently for different sequences.
	Visit func(p *Pass, first, next int)
	// Gradient, if not nil, is set to the gradient: a flat vector of Size elements.
	Gradient []float32
	// Wanted says which parts of the gradient are computed; the others are zero.
	Wanted Wanted
}

// Run computes a job. It fails only when ctx is done; then the gradient is undefined.
func (e *Engine) Run(ctx context.Context, job Job) error {
	var sums [Shards][]float32
	InParallel(Shards, func(shard int) {
		sums[shard] = e.runShard(ctx, job, shard)
	})
	if job.Gradient != nil {
		reduce(job.Gradient, sums[:])
	}
	for _, s := range sums {
		if s != nil {
			e.gradients.Put(&s)
		}
	}
	return ctx.Err()
}

// runShard returns the shard's gradient, or nil when it has none.
func (e *Engine) runShard(ctx context.Context, job Job, shard int) []float32 {
	n := len(job.Sequences)
	first, end := n*shard/Shards, n*(shard+1)/Shards
	if first == end {
		return nil
	}
	pass := e.pass()
	defer e.passes.Put(pass)
	var sum []float32
	if job.Gradient != nil {
		sum = e.zeroGradient()
	}
	for first < end && ctx.Err() == nil {
		next := Chunk(job.Sequences[:end], first, maxRows)
		pass.Forward(job.Params, job.Sequences[first:next])
		job.Visit(pass, first, next)
		if job.Gradient != nil {
			pass.Backward(job.Params, sum, job.Wanted)
		}
		first = next
	}
	return sum
}

func (e *Engine) pass() *Pass {
	if p, ok := e.passes.Get().(*Pass); ok {
		return p
	}
	return new(Pass)
}

func (e *Engine) zeroGradient() []float32 {
	if g, ok := e.gradients.Get().(*[]float32); ok {
		clear(*g)
		return *g
	}
	return make([]float32, Size)
}

// reduce adds the parts in order, element by element.
func reduce(sum []float32, parts [][]float32) {
	const ranges = 8
	InParallel(ranges, func(i int) {
		first, end := len(sum)*i/ranges, len(sum)*(i+1)/ranges
		to := sum[first:end]
		clear(to)
		for _, part := range parts {
			if part != nil {
				addTo(to, part[first:end])
			}
		}
	})
}

// InParallel calls f for 0 to n-1, each once, on as many goroutines as there are CPUs, and returns
// when all have returned.
func InParallel(n int, f func(i int)) {
	workers := min(n, runtime.GOMAXPROCS(0))
	if workers <= 1 {
		for i := range n {
			f(i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}
