// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/future"
)

// The kinds of results. All but JSON are protobuf.
const (
	KindJSON   future.Kind = "json"
	KindOutput future.Kind = "forward_backward"
	KindSample future.Kind = "sample"
)

// operation is something whose result is promised, with the faults that are meant for it.
type operation struct {
	life    *State
	call    fault.Call
	plan    fault.OperationFaults
	promise *future.Future
}

// newOperation makes the promise of a new operation.
func (l *State) newOperation(call fault.Call) *operation {
	o := &operation{life: l, call: call, plan: l.faults.ForOperation(call), promise: l.promises.New()}
	if o.plan.Has(fault.LoseFuture) {
		o.promise.Lose()
	}
	return o
}

// begin waits for whatever holds the operation up, and returns the failure that is planned for it.
func (o *operation) begin(ctx context.Context) error {
	if err := o.plan.Wait(ctx, fault.Execute, o.tell); err != nil {
		return err
	}
	return scripted(o.plan.Failure(fault.Execute))
}

// tell tells those who ask for the result how it stands.
func (o *operation) tell(queueState, reason string) {
	if queueState == "" {
		queueState, reason = future.Active, ""
	}
	o.promise.SetQueueStatus(future.QueueStatus{State: queueState, Reason: reason})
}

// settle keeps the promise with what came of the operation. A result that is to be held back waits
// on its own, so that the operations behind it need not.
func (o *operation) settle(ctx context.Context, result future.Result, err error) {
	if err == nil {
		err = scripted(o.plan.Failure(fault.Reply))
	}
	keep := func() { o.promise.Resolve(outcome(result, err)) }
	switch {
	case o.life.ctx.Err() != nil: // a restart forgets the promise
	case err != nil && ctx.Err() != nil:
		o.promise.Resolve(outcome(result, errGone))
	case !o.plan.Waits():
		keep()
	default:
		o.hold(ctx, keep)
	}
}

// errGone is the result of operations that were not carried out before their model went away.
var errGone = errors.New("carrying out the operation: the model is gone")

// hold keeps the promise once the plan lets it.
func (o *operation) hold(ctx context.Context, keep func()) {
	o.life.mu.Lock()
	defer o.life.mu.Unlock()
	_ = o.life.start(func() { // a life that ends forgets its promises
		_ = o.plan.Wait(ctx, fault.Reply, o.tell) // cut short, what was done is still the result
		keep()
	})
}

// outcome is the result that a client gets.
func outcome(result future.Result, err error) future.Result {
	if err == nil {
		return result
	}
	if failure, ok := errors.AsType[*scriptedError](err); ok {
		return jsonResult(tinker.FailedResult{Error: failure.Message, Category: tinker.Category(failure.Category)})
	}
	return jsonResult(asFailure(err))
}

// scriptedError is a failure that a fault asked for.
type scriptedError struct{ fault.Failure }

func (e *scriptedError) Error() string { return e.Message }

func scripted(failure *fault.Failure) error {
	if failure == nil {
		return nil
	}
	return &scriptedError{Failure: *failure}
}

// jsonResult encodes a result of the API's JSON types, which cannot fail.
func jsonResult(value any) future.Result {
	body, err := json.Marshal(value)
	if err != nil {
		body = fmt.Appendf(nil, `{"error":%q,"category":"server"}`, err.Error())
	}
	return future.Result{Kind: KindJSON, Body: body}
}

// protoResult wraps what an encoder returns.
func protoResult(kind future.Kind, body []byte, err error) (future.Result, error) {
	if err != nil {
		return future.Result{}, fmt.Errorf("encoding the result: %w", err)
	}
	return future.Result{Kind: kind, Body: body}, nil
}

// Await returns the result of a promise if it is there or comes within the time given; otherwise
// ok is false and the pause says how it stands. It returns future.ErrUnknown, future.ErrLost,
// ErrEnded or the context's error.
func (l *State) Await(ctx context.Context, id string, patience time.Duration) (result future.Result, pause future.QueueStatus, ok bool, err error) {
	p, err := l.promises.Lookup(id)
	if err != nil {
		return future.Result{}, future.QueueStatus{}, false, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(l.ctx, cancel)
	defer stop()
	result, pause, ok, err = p.Wait(ctx, patience)
	if err != nil && l.ctx.Err() != nil {
		err = ErrEnded
	}
	return result, pause, ok, err
}
