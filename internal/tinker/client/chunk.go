// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

const (
	opForwardBackward = "forward_backward"
	opForward         = "forward"
)

// ForwardBackward adds the gradients of the loss, summed over the datums, to the accumulated ones, and returns the
// log-probabilities of the targets. It sends the data in chunks of the sizes in the server's configuration, or of the
// sizes that the server accepts, and combines their results. If one chunk fails, the call fails after all chunks have
// ended; the other chunks have added their gradients.
func (m *Model) ForwardBackward(ctx context.Context, data []tinker.Datum,
	loss tinker.Loss) (*Future[tinker.ForwardBackwardResult], error) {
	if err := checkData(data); err != nil {
		return nil, &Error{Category: tinker.CategoryUser, Op: opForwardBackward, Err: err}
	}
	return m.ForwardBackwardEach(ctx, slices.Values(data), loss)
}

// ForwardBackwardEach is like ForwardBackward, but has only one chunk of the data in memory at a time. A datum that
// cannot be encoded is found only when its chunk is about to be sent.
func (m *Model) ForwardBackwardEach(ctx context.Context, data iter.Seq[tinker.Datum],
	loss tinker.Loss) (*Future[tinker.ForwardBackwardResult], error) {
	return m.submitPass(ctx, tinker.ForwardBackwardRequest{Loss: loss}, data)
}

// Forward is like ForwardBackward, but adds no gradients.
func (m *Model) Forward(ctx context.Context, data []tinker.Datum,
	loss tinker.Loss) (*Future[tinker.ForwardBackwardResult], error) {
	if err := checkData(data); err != nil {
		return nil, &Error{Category: tinker.CategoryUser, Op: opForward, Err: err}
	}
	return m.ForwardEach(ctx, slices.Values(data), loss)
}

// ForwardEach is like ForwardBackwardEach, but adds no gradients.
func (m *Model) ForwardEach(ctx context.Context, data iter.Seq[tinker.Datum],
	loss tinker.Loss) (*Future[tinker.ForwardBackwardResult], error) {
	return m.submitPass(ctx, tinker.ForwardBackwardRequest{Loss: loss, ForwardOnly: true}, data)
}

// submitPass submits data in one request for each chunk, and combines their results. If it returns an error, it has
// stopped fetching the results.
func (m *Model) submitPass(ctx context.Context, r tinker.ForwardBackwardRequest,
	data iter.Seq[tinker.Datum]) (*Future[tinker.ForwardBackwardResult], error) {
	op := passOp(r)
	polling, stop := context.WithCancel(ctx)
	parts, err := m.submitChunks(ctx, polling, r, data)
	if err != nil {
		stop()
		return nil, afterChunks(op, err, len(parts))
	}
	return inBackground(op, func() (tinker.ForwardBackwardResult, error) {
		defer stop()
		return gather(op, parts)
	}), nil
}

// submitChunks returns the results of the chunks that the server accepted, which are fetched under polling.
func (m *Model) submitChunks(ctx, polling context.Context, r tinker.ForwardBackwardRequest,
	data iter.Seq[tinker.Datum]) (parts []*Future[tinker.ForwardBackwardResult], err error) {
	op := passOp(r)
	config, err := m.caller.connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := acquire(ctx, m.submitting); err != nil {
		return nil, canceled(op, err)
	}
	defer m.submitting.Release(1)
	for r.Data = range config.Chunks(data) {
		accepted, err := m.submitChunk(ctx, polling, r, config.CompressForwardBackward, false)
		parts = append(parts, accepted...)
		if err != nil {
			return parts, err
		}
	}
	if len(parts) == 0 {
		return nil, &Error{Category: tinker.CategoryUser, Op: op, Err: errNoData}
	}
	return parts, nil
}

// submitChunk submits the data of a request at once, or in halves if the server rejects its size; part says that they
// are a part of data that was rejected before. The caller holds submitting.
func (m *Model) submitChunk(ctx, polling context.Context, r tinker.ForwardBackwardRequest,
	compress, part bool) ([]*Future[tinker.ForwardBackwardResult], error) {
	accepted, err := m.submit(ctx, func(seq int64) (request, error) {
		r.ModelID, r.SeqID = m.id, seq
		encoded, err := m.caller.bodies.check(forwardRequest(r, compress, m.caller.json.Load()))
		encoded.charge, encoded.part = m.caller.meter.chargeOfPass(r), part
		return encoded, err
	})
	if half := len(r.Data) / 2; half > 0 && isTooLarge(err) {
		left, right := r, r
		left.Data, right.Data = r.Data[:half], r.Data[half:]
		parts, err := m.submitChunk(ctx, polling, left, compress, true)
		if err != nil {
			return parts, err
		}
		rest, err := m.submitChunk(ctx, polling, right, compress, true)
		return append(parts, rest...), err
	}
	if err != nil {
		return nil, err
	}
	// The decoder of the result outlives the submit, and must not keep the data.
	decode := decodeOutput(passOp(r), len(r.Data))
	return []*Future[tinker.ForwardBackwardResult]{fetchChargedInBackground(polling, m.caller, accepted, decode)}, nil
}

// passOp names the operation of a request.
func passOp(r tinker.ForwardBackwardRequest) string {
	if r.ForwardOnly {
		return opForward
	}
	return opForwardBackward
}

var errNoData = errors.New("there are no datums")

// checkData finds data that cannot be encoded before anything is sent.
func checkData(data []tinker.Datum) error {
	if len(data) == 0 {
		return errNoData
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
	op := passOp(r)
	out := request{op: op, method: http.MethodPost, path: opForwardBackward, contentType: tinker.ContentProtobuf,
		indivisible: len(r.Data) == 1}
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
