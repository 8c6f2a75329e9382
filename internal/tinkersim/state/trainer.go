// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/future"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/latency"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/opqueue"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/stats"
)

// trainer carries out the operations of one model, one after the other, in a goroutine of its own.
type trainer struct {
	models  *Models
	run     checkpoint.Run
	config  model.Config // without the seed
	ctx     context.Context
	cancel  context.CancelFunc
	wake    chan struct{} // holds a token when there may be something to do
	stopped chan struct{}

	// adapter is used only by the goroutine, as is sequences, the number of sequences whose gradients are accumulated.
	adapter   *model.Adapter
	sequences int
	// samplers are the matrices of sampler weights by name, if they are kept. The goroutine alone uses them.
	samplers map[string][]float32

	mu       sync.Mutex // guards the fields below
	closed   bool
	queue    opqueue.Queue[*task]
	accepted map[int64]accepted // by sequence number
	// numbers are the keys of accepted, the oldest first, and forgotten is the highest number that was removed from it.
	numbers   []int64
	forgotten int64
}

// task is an operation with its submission.
type task struct {
	*operation
	submission
}

// submission is a request for an operation of a model.
type submission struct {
	op    string
	seq   int64
	chunk bool
	// name is the name of the checkpoint, for faults.
	name string
	// digest distinguishes a repetition from another operation with the same number.
	digest digest
	kind   stats.Work
	// sequences is the number of sequences of a forward_backward.
	sequences int
	// do carries out the operation, in the goroutine of the trainer.
	do func(t *trainer, o *operation) (future.Result, error)
}

func newTrainer(m *Models, run checkpoint.Run) *trainer {
	t := &trainer{
		models: m,
		run:    run,
		config: model.Config{
			Rank:           run.Rank,
			TrainAttention: run.TrainAttention,
			TrainMLP:       run.TrainMLP,
			TrainUnembed:   run.TrainUnembed,
		},
		wake:     make(chan struct{}, 1),
		stopped:  make(chan struct{}),
		accepted: map[int64]accepted{},
		samplers: map[string][]float32{},
	}
	t.ctx, t.cancel = context.WithCancel(m.background.ctx)
	return t
}

// submit submits an operation of a model.
func (m *Models) submit(id string, s submission) (tinker.FutureResponse, error) {
	t, err := m.trainer(id)
	if err != nil {
		return tinker.FutureResponse{}, err
	}
	return t.submit(s)
}

// submit adds an operation to the queue and returns its future. A repetition of an earlier submission is
// not added again; it gets the earlier future.
func (t *trainer) submit(s submission) (tinker.FutureResponse, error) {
	if s.seq < 1 {
		return tinker.FutureResponse{}, badRequest("seq_id must be at least 1")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return tinker.FutureResponse{}, notFound("model", t.run.ID)
	}
	if earlier, ok := t.accepted[s.seq]; ok {
		if earlier.digest != s.digest {
			return tinker.FutureResponse{}, badRequest("seq_id %d was used for another operation", s.seq)
		}
		return tinker.FutureResponse{RequestID: earlier.requestID, ModelID: t.run.ID}, nil
	}
	if s.seq <= t.forgotten {
		lost := t.models.futures.New()
		lost.Lose() // as the earlier result was
		return tinker.FutureResponse{RequestID: lost.ID(), ModelID: t.run.ID}, nil
	}
	call := fault.Call{Op: s.op, Session: t.run.Session, Model: t.run.ID, Name: s.name, Seq: s.seq}
	o := t.models.newOperation(call)
	t.forget()
	t.numbers = append(t.numbers, s.seq)
	t.accepted[s.seq] = accepted{digest: s.digest, requestID: o.result.ID()}
	if err := t.queue.Add(opqueue.Item[*task]{Seq: s.seq, Chunk: s.chunk, Value: &task{o, s}}); err != nil {
		o.settle(t.ctx, future.Result{}, fmt.Errorf("queueing operation %d: %w", s.seq, err))
	}
	t.signal()
	return tinker.FutureResponse{RequestID: o.result.ID(), ModelID: t.run.ID}, nil
}

// forget removes the oldest operations whose results no longer exist, and which the queue would not take again. The
// caller holds the lock.
func (t *trainer) forget() {
	for range min(2, len(t.numbers)) { // two for each operation that is added
		oldest := t.numbers[0]
		if oldest > t.queue.Barrier() {
			return
		}
		if _, err := t.models.futures.Lookup(t.accepted[oldest].requestID); err == nil {
			return
		}
		delete(t.accepted, oldest)
		t.numbers, t.forgotten = t.numbers[1:], max(t.forgotten, oldest)
	}
}

// signal wakes the goroutine up.
func (t *trainer) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// loop creates the model and then carries out its operations until the model is removed.
func (t *trainer) loop(create *task) {
	defer close(t.stopped)
	defer t.cancel()
	defer t.abandon()
	if err := t.carryOut(create); err != nil {
		t.models.cancel(t.run.ID)
		return
	}
	for t.ctx.Err() == nil {
		if next, ok := t.next(); ok {
			_ = t.carryOut(next) // the error is the result of the future
			continue
		}
		t.await()
	}
}

func (t *trainer) next() (*task, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	item, ok := t.queue.Next()
	return item.Value, ok
}

// await returns when there may be something to do. It skips a number that is missing for too long.
func (t *trainer) await() {
	t.mu.Lock()
	blocked := t.queue.Blocked()
	t.mu.Unlock()
	var patience <-chan time.Time
	if blocked {
		timer := time.NewTimer(t.models.options.GapPatience)
		defer timer.Stop()
		patience = timer.C
	}
	select {
	case <-t.wake:
	case <-t.ctx.Done():
	case <-patience:
		t.mu.Lock()
		t.queue.Skip()
		t.mu.Unlock()
	}
}

// carryOut carries out a task and resolves its future. It returns the error that the client receives.
func (t *trainer) carryOut(task *task) error {
	result, err := t.attempt(task)
	task.settle(t.ctx, result, err)
	return err
}

func (t *trainer) attempt(task *task) (future.Result, error) {
	if err := task.begin(t.ctx); err != nil {
		return future.Result{}, err
	}
	select {
	case t.models.slots <- struct{}{}:
	case <-t.ctx.Done():
		return future.Result{}, t.ctx.Err()
	}
	defer func() { <-t.models.slots }()
	start := t.models.options.Clock()
	result, err := t.perform(task)
	if err == nil {
		t.models.counters.CountOperation(task.call.Op, task.kind, t.models.options.Clock().Sub(start))
	}
	return result, err
}

// perform carries out a task, in the time that the latency profile gives it.
func (t *trainer) perform(task *task) (result future.Result, err error) {
	work := latency.Work{Op: task.call.Op, Model: t.run.ID, Name: task.call.Name, Sequences: task.sequences}
	task.ready, err = t.models.options.Latency.Operate(t.ctx, work, func() (err error) {
		result, err = task.do(t, task.operation)
		return err
	})
	return result, err
}

// abandon resolves the futures of all operations that will not be carried out.
func (t *trainer) abandon() {
	t.mu.Lock()
	t.closed = true
	remaining := t.queue.Drain()
	t.mu.Unlock()
	t.adapter = nil // references to the trainer must not keep its weights in memory
	for _, item := range remaining {
		item.Value.settle(t.ctx, future.Result{}, errModelRemoved)
	}
}
