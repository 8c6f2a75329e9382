// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/future"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// The kinds of results. All but KindJSON are protobuf.
const (
	KindJSON   future.Kind = "json"
	KindOutput future.Kind = "forward_backward"
	KindSample future.Kind = "sample"
)

// operation is work whose result is a future, with the faults that apply to it.
type operation struct {
	background *background
	call       fault.Call
	faults     fault.OperationFaults
	result     *future.Future
	// ready is the earliest time at which the result is sent; zero for at once.
	ready time.Time
}

// newOperation creates an operation with its future.
func (sh *shared) newOperation(call fault.Call) *operation {
	o := &operation{background: sh.background, call: call, faults: sh.faults.ForOperation(call), result: sh.futures.New()}
	if o.faults.Has(fault.LoseFuture) {
		o.result.Lose()
	}
	return o
}

// begin waits as long as faults delay the operation, and returns the failure that they cause.
func (o *operation) begin(ctx context.Context) error {
	if err := o.faults.Wait(ctx, fault.Execute, o.setQueueState); err != nil {
		return err
	}
	return o.faults.Failure(fault.Execute)
}

// setQueueState sets the queue state that polls for the result receive until it exists.
func (o *operation) setQueueState(queueState, reason string) {
	if queueState == "" {
		queueState, reason = future.Active, ""
	}
	o.result.SetQueueStatus(future.QueueStatus{State: queueState, Reason: reason})
}

// settle resolves the future with the outcome of the operation. A result that a fault or a latency holds back waits in
// a goroutine of its own, so that it does not delay later operations.
func (o *operation) settle(ctx context.Context, result future.Result, err error) {
	if err == nil {
		err = o.faults.Failure(fault.Reply)
	}
	resolve := func() { o.result.Resolve(outcome(result, err)) }
	switch {
	case o.background.isClosed(): // the future is forgotten with the State
	case err != nil && ctx.Err() != nil:
		o.result.Resolve(outcome(result, errModelRemoved))
	case !o.faults.Waits() && o.ready.IsZero():
		resolve()
	default:
		_ = o.background.start(func() { // a State that is closed forgets its futures
			// The work is done, so its result stays, even if a wait is cut short.
			_ = wait.Sleep(ctx, time.Until(o.ready))
			_ = o.faults.Wait(ctx, fault.Reply, o.setQueueState)
			resolve()
		})
	}
}

// errModelRemoved is the result of operations that were not carried out before their model was removed.
var errModelRemoved = errors.New("carrying out the operation: the model was removed")

// outcome returns the result that a client gets.
func outcome(result future.Result, err error) future.Result {
	if err == nil {
		return result
	}
	return jsonResult(asFailure(err))
}

// jsonResult encodes a result of the API's JSON types, which cannot fail.
func jsonResult(value any) future.Result {
	body, err := json.Marshal(value)
	if err != nil {
		body = fmt.Appendf(nil, `{"error":%q,"category":"server"}`, err.Error())
	}
	return future.Result{Kind: KindJSON, Body: body}
}

// protoResult wraps the return values of an encoder.
func protoResult(kind future.Kind, body []byte, err error) (future.Result, error) {
	if err != nil {
		return future.Result{}, fmt.Errorf("encoding the result: %w", err)
	}
	return future.Result{Kind: kind, Body: body}, nil
}
