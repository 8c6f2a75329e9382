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
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
)

// trainer carries out the operations of one model, one after the other, in a goroutine of its own.
type trainer struct {
	life    *State
	run     checkpoint.Run
	config  model.Config // without the seed
	ctx     context.Context
	cancel  context.CancelFunc
	wake    chan struct{} // holds a token when there may be something to do
	stopped chan struct{}

	adapter *model.Adapter // of the goroutine alone

	mu     sync.Mutex
	closed bool
	queue  opQueue[*task]
	known  map[int64]creation // by sequence number
}

// task is an operation and how it is carried out.
type task struct {
	*operation
	kind workKind
	do   func(ctx context.Context) (future.Result, error)
}

// submission is an operation as it arrives at a model.
type submission struct {
	op    string
	seq   int64
	chunk bool
	// name is that of the checkpoint, for faults.
	name string
	// digest tells a repetition from another operation under the same number.
	digest digest
	kind   workKind
	do     func(ctx context.Context, plan fault.OperationFaults) (future.Result, error)
}

func newTrainer(l *State, run checkpoint.Run) *trainer {
	t := &trainer{
		life: l,
		run:  run,
		config: model.Config{
			Rank:           run.Rank,
			TrainAttention: run.TrainAttention,
			TrainMLP:       run.TrainMLP,
			TrainUnembed:   run.TrainUnembed,
		},
		wake:    make(chan struct{}, 1),
		stopped: make(chan struct{}),
		known:   map[int64]creation{},
	}
	t.ctx, t.cancel = context.WithCancel(l.ctx)
	return t
}

// submit puts an operation in its place and returns its promise. One that was submitted before is
// not put there again; its promise is returned, if it is the same operation.
func (t *trainer) submit(s submission) (tinker.FutureResponse, error) {
	if s.seq < 1 {
		return tinker.FutureResponse{}, badRequest("seq_id must be at least 1")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return tinker.FutureResponse{}, notFound("model", t.run.ID)
	}
	if before, ok := t.known[s.seq]; ok {
		if before.digest != s.digest {
			return tinker.FutureResponse{}, badRequest("seq_id %d was used for another operation", s.seq)
		}
		return tinker.FutureResponse{RequestID: before.requestID, ModelID: t.run.ID}, nil
	}
	call := fault.Call{Op: s.op, Session: t.run.Session, Model: t.run.ID, Name: s.name, Seq: s.seq}
	o := t.life.newOperation(call)
	t.known[s.seq] = creation{digest: s.digest, requestID: o.promise.ID()}
	do := func(ctx context.Context) (future.Result, error) { return s.do(ctx, o.plan) }
	item := queueItem[*task]{seq: s.seq, chunk: s.chunk, value: &task{operation: o, kind: s.kind, do: do}}
	if err := t.queue.add(item); err != nil {
		o.settle(t.ctx, future.Result{}, fmt.Errorf("queueing operation %d: %w", s.seq, err))
	}
	t.nudge()
	return tinker.FutureResponse{RequestID: o.promise.ID(), ModelID: t.run.ID}, nil
}

func (t *trainer) nudge() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// loop creates the model and then carries out its operations until the model is gone.
func (t *trainer) loop(create *task) {
	defer close(t.stopped)
	defer t.cancel()
	defer t.abandon()
	if err := t.carryOut(create); err != nil {
		t.life.forget(t.run.ID)
		return
	}
	for t.ctx.Err() == nil {
		if next, ok := t.next(); ok {
			_ = t.carryOut(next) // the client has been told
			continue
		}
		t.await()
	}
}

func (t *trainer) next() (*task, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	item, ok := t.queue.next()
	return item.value, ok
}

// await returns when there may be something to do. A number that is missing for too long is given up.
func (t *trainer) await() {
	t.mu.Lock()
	blocked := t.queue.blocked()
	t.mu.Unlock()
	var patience <-chan time.Time
	if blocked {
		timer := time.NewTimer(t.life.options.GapPatience)
		defer timer.Stop()
		patience = timer.C
	}
	select {
	case <-t.wake:
	case <-t.ctx.Done():
	case <-patience:
		t.mu.Lock()
		t.queue.skip()
		t.mu.Unlock()
	}
}

// carryOut does what a task asks for and keeps its promise. The error is what the client is told.
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
	case t.life.slots <- struct{}{}:
	case <-t.ctx.Done():
		return future.Result{}, t.ctx.Err()
	}
	defer func() { <-t.life.slots }()
	start := t.life.options.Clock()
	result, err := task.do(t.ctx)
	if err == nil {
		t.life.counters.countOperation(task.call.Op, task.kind, t.life.options.Clock().Sub(start))
	}
	return result, err
}

// abandon settles everything that will not be carried out any more.
func (t *trainer) abandon() {
	t.mu.Lock()
	t.closed = true
	left := t.queue.drain()
	t.mu.Unlock()
	for _, item := range left {
		item.value.settle(t.ctx, future.Result{}, errGone)
	}
}
