// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// Pass is a ForwardBackward whose data become known one after the other. Its chunks are those that ForwardBackward would
// make of all data together. One goroutine may use it.
type Pass struct {
	model *Model
	op    string
	loss  tinker.Loss
	// polling limits the fetching of all results.
	polling context.Context
	stop    context.CancelFunc
	parts   []*Future[tinker.ForwardBackwardResult]
}

// NewPass begins a pass that has no data yet. The ctx limits the fetching of its results.
func (m *Model) NewPass(ctx context.Context, loss tinker.Loss) *Pass {
	polling, stop := context.WithCancel(ctx)
	return &Pass{model: m, op: opForwardBackward, loss: loss, polling: polling, stop: stop}
}

// PostFull submits the chunks of the data that further data would not change, and returns the data that are left, with
// which the next call has to begin. After an error the model must not be used.
func (p *Pass) PostFull(ctx context.Context, data []tinker.Datum) ([]tinker.Datum, error) {
	return p.post(ctx, data, false)
}

// PostRest submits the last data, which may be none if there were others, and returns the result of the whole pass.
func (p *Pass) PostRest(ctx context.Context, data []tinker.Datum) (*Future[tinker.ForwardBackwardResult], error) {
	if len(data) > 0 || len(p.parts) == 0 {
		if _, err := p.post(ctx, data, true); err != nil {
			return nil, err
		}
	}
	return inBackground(p.op, func() (tinker.ForwardBackwardResult, error) {
		defer p.stop()
		return gather(p.op, p.parts)
	}), nil
}

// post submits data in chunks, and returns those of the last one unless it is full or all are to be submitted. A chunk whose
// size the server rejects is submitted in halves.
func (p *Pass) post(ctx context.Context, data []tinker.Datum, all bool) ([]tinker.Datum, error) {
	if err := checkData(data); err != nil {
		return nil, p.fail(&Error{Category: tinker.CategoryUser, Op: p.op, Err: err})
	}
	m := p.model
	config, err := m.caller.connect(ctx)
	if err != nil {
		return nil, p.fail(err)
	}
	if err := acquire(ctx, m.submitting); err != nil {
		return nil, p.fail(canceled(p.op, err))
	}
	defer m.submitting.Release(1)
	chunks, rest := config.Chunks(data), []tinker.Datum(nil)
	if last := len(chunks) - 1; !all && !config.IsFull(chunks[last]) {
		chunks, rest = chunks[:last], chunks[last]
	}
	for len(chunks) > 0 {
		chunk := chunks[0]
		accepted, err := m.submit(ctx, func(seq int64) (request, error) {
			r := tinker.ForwardBackwardRequest{ModelID: m.id, SeqID: seq, ForwardOnly: p.op == opForward, Loss: p.loss, Data: chunk}
			return m.caller.bodies.check(forwardRequest(r, config.CompressForwardBackward, m.caller.json.Load()))
		})
		if half := len(chunk) / 2; half > 0 && isTooLarge(err) {
			chunks = slices.Concat([][]tinker.Datum{chunk[:half], chunk[half:]}, chunks[1:])
			continue
		}
		if err != nil {
			return nil, p.fail(err)
		}
		p.parts = append(p.parts, fetchInBackground(p.polling, m.caller, accepted, decodeOutput(p.op, chunk)))
		chunks = chunks[1:]
	}
	return rest, nil
}

// fail stops the fetching of results, and returns the error of the pass.
func (p *Pass) fail(err error) error {
	p.stop()
	return afterChunks(p.op, err, len(p.parts))
}
