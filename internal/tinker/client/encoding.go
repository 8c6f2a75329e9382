// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"net/http"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// UseJSON makes the client send training data in JSON, to servers that do not read protobuf.
func (c *Client) UseJSON() { c.json.Store(true) }

// SendsJSON reports whether the client sends training data in JSON.
func (c *Client) SendsJSON() bool { return c.json.Load() }

// FindEncoding finds out by a forward pass whether the server reads training data in protobuf, and makes the client use
// JSON if it does not. A refusal of protobuf, or an error of the server, is followed by one attempt in JSON. While both
// fail and one of the errors is temporary, FindEncoding tries again. It reports whether the server reads protobuf.
func (m *Model) FindEncoding(ctx context.Context, data []tinker.Datum, loss tinker.Loss) (bool, error) {
	config, err := m.caller.connect(ctx)
	if err != nil {
		return false, err
	}
	if err := acquire(ctx, m.submitting); err != nil {
		return false, canceled(opForward, err)
	}
	defer m.submitting.Release(1)
	r := tinker.ForwardBackwardRequest{ModelID: m.id, SeqID: m.next, ForwardOnly: true, Loss: loss, Data: data}
	pause := newBackoff(maxDelay, m.caller.spread)
	for {
		refusal := m.tryEncoding(ctx, r, config, false)
		if refusal == nil || !mayBeEncoding(refusal) {
			return true, refusal
		}
		failed := m.tryEncoding(ctx, r, config, true)
		if failed == nil {
			m.caller.json.Store(true)
			return false, nil
		}
		reason := asError(opForward, refusal)
		if last := asError(opForward, failed); !reason.Temporary() || !mayBeEncoding(failed) {
			reason = last
		}
		if !reason.Temporary() || !mayBeEncoding(failed) {
			m.broken = reason
			return false, reason
		}
		delay := pause.delayAfter(reason)
		m.caller.report(ctx, reason, delay)
		err := wait.Sleep(ctx, delay)
		m.caller.notify(ctx, Event{Op: reason.Op, Category: reason.Category, Over: true})
		if err != nil {
			return false, canceled(opForward, err)
		}
	}
}

// tryEncoding makes one forward pass in an encoding. Both encodings are sent under the number of the same operation.
func (m *Model) tryEncoding(ctx context.Context, r tinker.ForwardBackwardRequest, config tinker.ServerConfig,
	inJSON bool) error {
	req, err := forwardRequest(r, config.CompressForwardBackward, inJSON)
	if err != nil {
		return err
	}
	req.once = true
	p, err := m.caller.submitCharged(ctx, req, m.caller.meter.chargeOfPass(r))
	if err != nil {
		return err
	}
	m.next = r.SeqID + 1
	_, err = fetchCharged(ctx, m.caller, p, decodeOutput(opForward, len(r.Data)))
	return err
}

// mayBeEncoding reports whether an error may mean that the server does not read the encoding of a body.
func mayBeEncoding(err error) bool {
	switch e := asError("", err); e.Category {
	case tinker.CategoryUser, tinker.CategoryUnsupported:
		return true
	case tinker.CategoryServer:
		return e.Status >= http.StatusInternalServerError
	}
	return false
}

// decodeOutput returns a decoder of the result of a pass over a chunk with the given number of datums. The result
// must have outputs of all datums or of none.
func decodeOutput(op string, datums int) func(response) (tinker.ForwardBackwardResult, error) {
	return decodeEither(op, tinker.DecodeOutput, tinker.DecodeOutputJSON, func(result tinker.ForwardBackwardResult) error {
		if got := len(result.LossFnOutputs); got != 0 && got != datums {
			return fmt.Errorf("result has outputs of %d datums, not of %d", got, datums)
		}
		return nil
	})
}

// decodeEither returns a decoder of results that servers encode in protobuf or in JSON.
func decodeEither[T any](op string, inProtobuf, inJSON func([]byte) (T, error),
	check func(T) error) func(response) (T, error) {
	return func(resp response) (T, error) {
		decode := inJSON
		if resp.isProtobuf() {
			decode = inProtobuf
		}
		value, err := decode(resp.body)
		if err == nil {
			err = check(value)
		}
		if err != nil {
			var zero T
			return zero, protocolError(op, err)
		}
		return value, nil
	}
}
