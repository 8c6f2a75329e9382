// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// Future is a result that is being fetched. Fetching begins with the submit, under the submit's context,
// whether anybody waits or not.
type Future[T any] struct {
	op    string
	done  chan struct{}
	value T
	err   error
}

// Wait waits for the result. It may be called any number of times, by any goroutine; when its ctx ends, Wait
// returns and the fetching continues.
func (f *Future[T]) Wait(ctx context.Context) (T, error) {
	select {
	case <-f.done:
		return f.value, f.err
	default:
	}
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		var zero T
		return zero, &Error{Category: tinker.CategoryCanceled, Op: f.op, MayHaveRun: true, Err: context.Cause(ctx)}
	}
}

// inBackground runs the function in its own goroutine.
func inBackground[T any](op string, run func() (T, error)) *Future[T] {
	f := &Future[T]{op: op, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		f.value, f.err = run()
	}()
	return f
}

// pending is an accepted submit: its operation, and the id by which its result is fetched.
type pending struct {
	op     string
	id     string
	accept string
	// charge is the cost of the operation; nil for an operation without cost.
	charge *charge
}

// submit sends an operation until it is accepted.
func (c *caller) submit(ctx context.Context, req request) (pending, error) {
	accepted, err := fetchValid(ctx, c, req, func(accepted tinker.FutureResponse) error {
		return required("request_id", accepted.RequestID)
	})
	if err != nil {
		return pending{}, err
	}
	return pending{op: req.op, id: accepted.RequestID, accept: acceptOf(req)}, nil
}

// required returns an error if a response lacks a field.
func required(name, value string) error {
	if value == "" {
		return fmt.Errorf("response has no %s", name)
	}
	return nil
}

// acceptOf returns the preferred encoding of a result. Servers without protobuf send results in JSON all the same.
func acceptOf(req request) string {
	if req.op == opSample || req.contentType == tinker.ContentProtobuf {
		return tinker.ContentProtobuf
	}
	return tinker.ContentJSON
}

// fetchInBackground starts to fetch a result.
func fetchInBackground[T any](ctx context.Context, c *caller, p pending, decode func(response) (T, error)) *Future[T] {
	return inBackground(p.op, func() (T, error) { return fetchResult(ctx, c, p, decode) })
}

// fetchResult fetches a result. Its errors name the future, and the operation may have run whatever the error.
func fetchResult[T any](ctx context.Context, c *caller, p pending, decode func(response) (T, error)) (T, error) {
	var value T
	err := c.poll(ctx, p, func(resp response) error {
		var err error
		value, err = decode(resp)
		return err
	})
	if err == nil {
		return value, nil
	}
	failed := asLost(c.identify(asError(p.op, err), pollRequest))
	failed.Op, failed.RequestID, failed.MayHaveRun = p.op, p.id, true
	var zero T
	return zero, failed
}

// decodeResult returns a decoder of JSON results.
func decodeResult[T any](op string) func(response) (T, error) {
	return func(resp response) (T, error) {
		if resp.isProtobuf() {
			var zero T
			return zero, protocolError(op, fmt.Errorf("result is in protobuf"))
		}
		value, err := decodeJSON[T](op, resp)
		if err == nil {
			err = checkKeys[T](op, resp.body)
		}
		return value, err
	}
}
