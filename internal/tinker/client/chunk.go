// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"net/http"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

const (
	opForwardBackward = "forward_backward"
	opForward         = "forward"
)

// ForwardBackward adds the gradients of the loss, summed over the datums, to the accumulated ones, and returns the
// log-probabilities of the targets. It sends the data in chunks of the sizes that the server's configuration says,
// or of those that it accepts, and combines their results. If one chunk fails, the call fails after all chunks have
// ended; the other chunks have added their gradients.
func (m *Model) ForwardBackward(ctx context.Context, data []tinker.Datum, loss tinker.Loss) (*Future[tinker.ForwardBackwardResult], error) {
	return m.NewPass(ctx, loss).PostRest(ctx, data)
}

// Forward returns what ForwardBackward returns, and adds no gradients.
func (m *Model) Forward(ctx context.Context, data []tinker.Datum, loss tinker.Loss) (*Future[tinker.ForwardBackwardResult], error) {
	p := m.NewPass(ctx, loss)
	p.op = opForward
	return p.PostRest(ctx, data)
}

// checkData finds data that cannot be encoded before anything is sent.
func checkData(data []tinker.Datum) error {
	if len(data) == 0 {
		return fmt.Errorf("there are no datums")
	}
	for i, datum := range data {
		if err := datum.Validate(); err != nil {
			return fmt.Errorf("datum %d: %w", i, err)
		}
	}
	return nil
}

// forwardRequest encodes a pass. In JSON a forward pass has a path of its own.
func forwardRequest(r tinker.ForwardBackwardRequest, compress, inJSON bool) (request, error) {
	op := opForwardBackward
	if r.ForwardOnly {
		op = opForward
	}
	out := request{op: op, method: http.MethodPost, path: opForwardBackward, contentType: tinker.ContentProtobuf, indivisible: len(r.Data) == 1}
	var err error
	switch {
	case inJSON:
		out.path, out.contentType = op, tinker.ContentJSON
		out.body, err = tinker.EncodeForwardBackwardJSON(r)
	case compress:
		out.encoding = tinker.EncodingZstd
		if out.body, err = tinker.EncodeForwardBackward(r); err == nil {
			out.body, err = tinker.Compress(out.body)
		}
	default:
		out.body, err = tinker.EncodeForwardBackward(r)
	}
	if err != nil {
		return request{}, &Error{Category: tinker.CategoryUser, Op: op, Err: err}
	}
	return out, nil
}

// afterChunks returns the error of a call that failed after some of its chunks had been accepted.
func afterChunks(op string, err error, accepted int) error {
	if accepted == 0 {
		return err
	}
	failed := asError(op, err)
	failed.MayHaveRun = true
	return failed
}

// gather waits for all chunks, and then combines their results or returns the first error.
func gather(op string, parts []*Future[tinker.ForwardBackwardResult]) (tinker.ForwardBackwardResult, error) {
	results := make([]tinker.ForwardBackwardResult, len(parts))
	var first error
	for i, part := range parts {
		<-part.done
		results[i] = part.value
		if part.err != nil && first == nil {
			first = fmt.Errorf("chunk %d of %d: %w", i+1, len(parts), part.err)
		}
	}
	if first != nil {
		return tinker.ForwardBackwardResult{}, first
	}
	combined, err := combine(results)
	if err != nil {
		return tinker.ForwardBackwardResult{}, protocolError(op, err)
	}
	return combined, nil
}
