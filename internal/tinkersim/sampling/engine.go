// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package sampling decodes completions for many callers together.
//
// Requests wait in one queue. A decoder takes the oldest and all others in the queue with the same
// weights, up to a number of rows, and decodes them as one batch. A completion is a function of its
// weights and its own row alone, so it does not depend on the rest of the batch. The package knows no
// sessions, paths or futures: a key names the weights.
package sampling

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
)

// ErrBusy says that too many rows are waiting.
var ErrBusy = errors.New("queueing samples: too many are waiting")

// ErrClosed is the error of requests that were not decoded before the engine was closed.
var ErrClosed = errors.New("sampling: the engine is closed")

// ErrCanceled is the error of requests that were canceled.
var ErrCanceled = errors.New("sampling: the request was canceled")

// Config configures an engine. Numbers that are zero are replaced by defaults.
type Config struct {
	// Decoders is the number of batches that are decoded at the same time; 2 by default.
	Decoders int
	// Rows is the number of completions in one batch; 256 by default.
	Rows int
	// Waiting limits the waiting completions; 16384 by default.
	Waiting int
	// Load loads weights that are not in the cache.
	Load func(key string) (*model.Weights, error)
	// Now returns the current time, to measure the work.
	Now func() time.Time
}

// Request asks for completions of one prompt, its log-probabilities, or both.
type Request struct {
	// Key names the weights.
	Key string
	// Rows are the completions. They must be within the model's limits.
	Rows []model.SampleRequest
	// Prompt is the prompt for PromptLogprobs and TopK.
	Prompt []int32
	// PromptLogprobs asks for the log-probability of each token of the prompt.
	PromptLogprobs bool
	// Unscored is the number of first tokens of the prompt that are not scored.
	Unscored int
	// TopK asks for the TopK likeliest alternatives to each token of the prompt; 0 means none.
	TopK int
	// Targets are tokens whose log-probabilities within the prompt are asked for.
	Targets []model.Target
	// Ready are samples that need no weights; nil for samples that are to be drawn.
	Ready []model.Sample
	// Canceled stops the work for the request once it is closed; nil never does.
	Canceled <-chan struct{}
	// Done is called once, from a goroutine of the engine. It must not block.
	Done func(Output, error)
}

// Reorder puts the completions in another order, which the number decides. Each keeps its tokens.
func (r *Request) Reorder(number uint64) {
	rand.New(rand.NewPCG(number, 0)).Shuffle(len(r.Rows), func(i, j int) { r.Rows[i], r.Rows[j] = r.Rows[j], r.Rows[i] })
}

func (r *Request) isCanceled() bool {
	select {
	case <-r.Canceled:
		return true
	default:
		return false
	}
}

// weight is the number of rows that the request counts for in limits.
func (r *Request) weight() int { return max(1, len(r.Rows)) }

// Output is the result of a request.
type Output struct {
	// Samples has one for each row.
	Samples []model.Sample
	// PromptLogprobs has an entry for each token of the prompt, if asked for.
	PromptLogprobs []float32
	// TopIDs and TopLogprobs have a row for each token of the prompt, if asked for.
	TopIDs      [][]int32
	TopLogprobs [][]float32
	// TargetLogprobs has one for each target.
	TargetLogprobs []float32
}

// Stats are the counters of an engine.
type Stats struct {
	// Busy is the time that was spent decoding, over all decoders.
	Busy    time.Duration
	Batches int64
	Rows    int64
	// Tokens is the number of drawn tokens.
	Tokens int64
}

func (s *Stats) add(more Stats) {
	s.Busy += more.Busy
	s.Batches += more.Batches
	s.Rows += more.Rows
	s.Tokens += more.Tokens
}

// cachedWeights is the number of sets of weights in the cache.
const cachedWeights = 32

// Engine is a queue of requests with the decoders that work on it. It is safe for concurrent use.
type Engine struct {
	config Config
	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup
	wake   chan struct{} // holds a token for each decoder that may have something to do
	cache  *cache

	mu      sync.Mutex
	queue   []*Request
	waiting int
	stats   Stats
}

// New starts an engine. It runs until Close.
func New(config Config) *Engine {
	config.Decoders = cmp.Or(config.Decoders, 2)
	config.Rows = cmp.Or(config.Rows, 256)
	config.Waiting = cmp.Or(config.Waiting, 16384)
	ctx, cancel := context.WithCancel(context.Background())
	e := &Engine{
		config: config,
		ctx:    ctx,
		cancel: cancel,
		wake:   make(chan struct{}, config.Decoders),
		cache:  newCache(cachedWeights, config.Load),
	}
	for range config.Decoders {
		e.group.Go(e.loop)
	}
	return e
}

// Close stops the decoders and waits for them. Requests that were not decoded get ErrClosed.
func (e *Engine) Close() {
	e.cancel()
	e.group.Wait()
	e.mu.Lock()
	queue := e.queue
	e.queue, e.waiting = nil, 0
	e.mu.Unlock()
	for _, r := range queue {
		r.Done(Output{}, ErrClosed)
	}
	e.cache.clear()
}

// Submit adds a request to the queue, or returns ErrBusy or ErrClosed without calling Done.
func (e *Engine) Submit(r *Request) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx.Err() != nil {
		return ErrClosed
	}
	if r.Ready != nil {
		e.group.Go(func() { r.Done(Output{Samples: r.Ready}, nil) })
		return nil
	}
	if e.waiting > 0 && e.waiting+r.weight() > e.config.Waiting {
		return ErrBusy
	}
	e.queue = append(e.queue, r)
	e.waiting += r.weight()
	e.wakeOne()
	return nil
}

// Keep adds weights to the cache, so that the next request need not load them.
func (e *Engine) Keep(key string, weights *model.Weights) { e.cache.put(key, weights) }

// Stats returns the counters of the engine.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stats
}

// wakeOne wakes one decoder; when the channel is full, all of them will look at the queue anyway.
func (e *Engine) wakeOne() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// loop is a decoder: it decodes batches until the engine is closed.
func (e *Engine) loop() {
	for {
		batch := e.take()
		if batch == nil {
			select {
			case <-e.wake:
				continue
			case <-e.ctx.Done():
				return
			}
		}
		start := e.config.Now()
		e.run(batch)
		e.count(Stats{Busy: e.config.Now().Sub(start)})
		if e.ctx.Err() != nil {
			return
		}
	}
}

func (e *Engine) count(stats Stats) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stats.add(stats)
}

// take removes the oldest request and further requests that fit into its batch from the queue.
func (e *Engine) take() []*Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queue) == 0 {
		return nil
	}
	batch, rows := []*Request{e.queue[0]}, e.queue[0].weight()
	rest := e.queue[:0]
	for _, r := range e.queue[1:] {
		if r.Key != batch[0].Key || rows+r.weight() > e.config.Rows {
			rest = append(rest, r)
			continue
		}
		batch, rows = append(batch, r), rows+r.weight()
	}
	clear(e.queue[len(rest):])
	e.queue = rest
	e.waiting -= rows
	if len(rest) > 0 {
		e.wakeOne()
	}
	return batch
}

// run decodes a batch and calls Done for its requests.
func (e *Engine) run(batch []*Request) {
	weights, err := e.cache.get(batch[0].Key)
	batch = dropCanceled(batch)
	if err != nil {
		for _, r := range batch {
			r.Done(Output{}, err)
		}
		return
	}
	if len(batch) == 0 || e.decodeBatch(weights, batch) == nil {
		return
	}
	// A row that the model refuses must not fail the rest of the batch: each request is decoded alone.
	for _, r := range batch {
		if err := e.decodeBatch(weights, []*Request{r}); err != nil {
			r.Done(Output{}, err)
		}
	}
}

// dropCanceled returns the requests that were not canceled, and ends the others.
func dropCanceled(batch []*Request) []*Request {
	return slices.DeleteFunc(batch, func(r *Request) bool {
		canceled := r.isCanceled()
		if canceled {
			r.Done(Output{}, ErrCanceled)
		}
		return canceled
	})
}

// decodeBatch decodes a batch and calls Done for all of its requests, or for none of them and returns the error. The
// work is counted before Done is called.
func (e *Engine) decodeBatch(weights *model.Weights, batch []*Request) error {
	var rows []model.SampleRequest
	for _, r := range batch {
		for _, row := range r.Rows {
			row.Canceled = r.Canceled
			rows = append(rows, row)
		}
	}
	var samples []model.Sample
	if len(rows) > 0 {
		var err error
		if samples, err = weights.Sample(e.ctx, rows); err != nil {
			return err
		}
	}
	outputs := make([]Output, len(batch))
	for i, r := range batch {
		output, err := e.promptOutput(weights, r)
		if err != nil {
			return err
		}
		output.Samples, samples = samples[:len(r.Rows)], samples[len(r.Rows):]
		outputs[i] = output
	}
	stats := Stats{Batches: 1, Rows: int64(len(rows))}
	for _, output := range outputs {
		for _, s := range output.Samples {
			stats.Tokens += int64(len(s.Tokens))
		}
	}
	e.count(stats)
	for i, r := range batch {
		if r.isCanceled() { // its samples may have been cut short
			r.Done(Output{}, ErrCanceled)
			continue
		}
		r.Done(outputs[i], nil)
	}
	return nil
}

// promptOutput computes the part of the output that is about the prompt.
func (e *Engine) promptOutput(weights *model.Weights, r *Request) (Output, error) {
	var output Output
	var err error
	if r.isCanceled() {
		return Output{}, nil
	}
	if r.PromptLogprobs {
		if output.PromptLogprobs, err = weights.PromptLogprobs(e.ctx, r.Prompt); err != nil {
			return Output{}, err
		}
	}
	if r.TopK > 0 {
		output.TopIDs, output.TopLogprobs, err = weights.TopKPromptLogprobs(e.ctx, r.Prompt, r.TopK)
	}
	if len(r.Targets) > 0 && err == nil {
		output.TargetLogprobs, err = weights.TargetLogprobs(e.ctx, r.Prompt, r.Targets)
	}
	for i := range r.Unscored {
		if r.PromptLogprobs {
			output.PromptLogprobs[i] = float32(math.NaN())
		}
		if i < len(output.TopIDs) {
			output.TopIDs[i], output.TopLogprobs[i] = nil, nil
		}
	}
	return output, err
}
