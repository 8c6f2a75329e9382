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

// ForwardBackward adds the gradients of the loss, summed over the datums, to those that have gathered, and
// gives the log-probabilities of the targets. The data go out in chunks, as the server's configuration
// says, and the result is that of all. If one chunk fails the call fails, once all are known; the others
// have added their gradients.
func (m *Model) ForwardBackward(ctx context.Context, data []tinker.Datum, loss tinker.Loss) (*Future[tinker.ForwardBackwardResult], error) {
	return m.forward(ctx, opForwardBackward, data, loss)
}

// Forward gives what ForwardBackward gives, and leaves no gradient.
func (m *Model) Forward(ctx context.Context, data []tinker.Datum, loss tinker.Loss) (*Future[tinker.ForwardBackwardResult], error) {
	return m.forward(ctx, opForward, data, loss)
}

func (m *Model) forward(ctx context.Context, op string, data []tinker.Datum, loss tinker.Loss) (*Future[tinker.ForwardBackwardResult], error) {
	if err := checkData(data); err != nil {
		return nil, &Error{Category: tinker.CategoryUser, Op: op, Err: err}
	}
	config, err := m.client.connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := m.turn.take(ctx); err != nil {
		return nil, canceled(op, err)
	}
	defer m.turn.give()
	polling, stop := context.WithCancel(ctx)
	var parts []*Future[tinker.ForwardBackwardResult]
	for _, chunk := range splitData(data, config) {
		p, err := m.submit(ctx, func(seq int64) (call, error) {
			r := tinker.ForwardBackwardRequest{ModelID: m.id, SeqID: seq, ForwardOnly: op == opForward, Loss: loss, Data: chunk}
			return forwardCall(op, r, config.CompressForwardBackward)
		})
		if err != nil {
			stop()
			return nil, afterChunks(op, err, len(parts))
		}
		p.accept = tinker.ContentProtobuf
		parts = append(parts, fetchInBackground(polling, m.client, p, decodeProtobuf(op, decodeChunkOf(chunk))))
	}
	return inBackground(op, func() (tinker.ForwardBackwardResult, error) {
		defer stop()
		return gather(op, parts)
	}), nil
}

// checkData finds what cannot be encoded before anything is sent.
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

// splitData cuts the data greedily: a chunk ends when it has the most datums, or when another would take
// it over the most bytes. A datum that is larger goes alone.
func splitData(data []tinker.Datum, config tinker.ServerConfig) [][]tinker.Datum {
	var chunks [][]tinker.Datum
	start, size := 0, int64(0)
	for i, datum := range data {
		own := datum.Size()
		if i > start && (i-start >= config.MaxChunkLen || size+own > config.MaxChunkBytes) {
			chunks = append(chunks, data[start:i])
			start, size = i, 0
		}
		size += own
	}
	return append(chunks, data[start:])
}

func forwardCall(op string, r tinker.ForwardBackwardRequest, compress bool) (call, error) {
	body, err := tinker.EncodeForwardBackward(r)
	encoding := ""
	if err == nil && compress {
		encoding = tinker.EncodingZstd
		body, err = tinker.Compress(body)
	}
	if err != nil {
		return call{}, &Error{Category: tinker.CategoryUser, Op: op, Err: err}
	}
	return call{
		op: op, method: http.MethodPost, path: "forward_backward",
		body: body, contentType: tinker.ContentProtobuf, encoding: encoding,
	}, nil
}

// decodeChunkOf reads the result of one chunk, and checks that it is of as many datums, or of none.
func decodeChunkOf(chunk []tinker.Datum) func([]byte) (tinker.ForwardBackwardResult, error) {
	return func(body []byte) (tinker.ForwardBackwardResult, error) {
		result, err := tinker.DecodeOutput(body)
		if got := len(result.LossFnOutputs); err == nil && got != 0 && got != len(chunk) {
			err = fmt.Errorf("result has outputs of %d datums, not of %d", got, len(chunk))
		}
		return result, err
	}
}

// afterChunks is the error of a call that failed when some of its chunks had been accepted.
func afterChunks(op string, err error, accepted int) error {
	if accepted == 0 {
		return err
	}
	failed := asError(op, err)
	failed.MayHaveRun = true
	return failed
}

// gather waits for all chunks, and only then fails with the first that failed.
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
