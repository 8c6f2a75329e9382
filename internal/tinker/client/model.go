// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// Model is an adapter in training on the server. Its methods may be called concurrently: each submits its
// operation in turn, and what was submitted first is executed first.
//
// The ctx of a submit also bounds the fetching of the result. If it ends before the submit was answered,
// the model is broken, because its number may or may not have been used.
type Model struct {
	client *Client
	id     string
	turn   turn
	// next is the number of the next operation, and broken why there is none; both belong to the turn.
	next   int64
	broken error
}

// CreateModel makes the model (Session, ModelSeq), or finds it if the first answer was lost, and waits
// until it is there.
func (c *Client) CreateModel(ctx context.Context, r tinker.CreateModelRequest) (*Model, error) {
	r.Type = tinker.TypeCreateModel
	ask, err := postJSON(tinker.TypeCreateModel, tinker.TypeCreateModel, r)
	if err != nil {
		return nil, err
	}
	p, err := c.submit(ctx, ask)
	if err != nil {
		return nil, err
	}
	made, err := redeem(ctx, c, p, decodeResult[tinker.CreateModelResult](p.op))
	if err != nil {
		return nil, err
	}
	if made.ModelID == "" {
		return nil, protocolError(p.op, fmt.Errorf("result has no model_id"))
	}
	return &Model{client: c, id: made.ModelID, turn: newTurn(), next: 1}, nil
}

// ID is the model's id, which is that of its training run.
func (m *Model) ID() string { return m.id }

// OptimStep applies the gradients that have gathered, and clears them.
func (m *Model) OptimStep(ctx context.Context, p tinker.AdamParams) (*Future[tinker.OptimStepResult], error) {
	return submitJSON[tinker.OptimStepResult](ctx, m, tinker.TypeOptimStep, func(seq int64) any {
		return tinker.OptimStepRequest{AdamParams: p, ModelID: m.id, SeqID: seq, Type: tinker.TypeOptimStep}
	})
}

// SaveRequest names what is saved.
type SaveRequest struct {
	// Name is bare: letters, digits and - _ . only.
	Name string
	// TTLSeconds until it is deleted; 0 is never.
	TTLSeconds int64
}

func (r SaveRequest) ttl() *int64 {
	if r.TTLSeconds == 0 {
		return nil
	}
	return &r.TTLSeconds
}

// SaveState saves weights and optimizer under a name. A name that is taken fails with CategoryExists.
func (m *Model) SaveState(ctx context.Context, r SaveRequest) (*Future[tinker.SaveResult], error) {
	return m.save(ctx, tinker.TypeSaveWeights, func(seq int64) any {
		return tinker.SaveWeightsRequest{ModelID: m.id, Path: r.Name, SeqID: seq, TTLSeconds: r.ttl(), Type: tinker.TypeSaveWeights}
	})
}

// SaveSampler saves weights for sampling under a name. A name that is taken fails with CategoryExists.
func (m *Model) SaveSampler(ctx context.Context, r SaveRequest) (*Future[tinker.SaveResult], error) {
	return m.save(ctx, tinker.TypeSaveSampler, func(seq int64) any {
		return tinker.SaveSamplerRequest{ModelID: m.id, Path: r.Name, SeqID: seq, TTLSeconds: r.ttl(), Type: tinker.TypeSaveSampler}
	})
}

func (m *Model) save(ctx context.Context, op string, body func(seq int64) any) (*Future[tinker.SaveResult], error) {
	decode := func(answer reply) (tinker.SaveResult, error) {
		result, err := decodeResult[tinker.SaveResult](op)(answer)
		if err == nil && result.Path == "" {
			err = protocolError(op, fmt.Errorf("result has no path"))
		}
		return result, err
	}
	return submitDecoded(ctx, m, op, body, decode)
}

// LoadState loads a state into the model, with or without the optimizer's. Hosted servers allow it as the
// first operation alone.
func (m *Model) LoadState(ctx context.Context, path string, optimizer bool) (*Future[tinker.LoadResult], error) {
	return submitJSON[tinker.LoadResult](ctx, m, tinker.TypeLoadWeights, func(seq int64) any {
		return tinker.LoadWeightsRequest{ModelID: m.id, SeqID: seq, Path: path, Optimizer: optimizer, Type: tinker.TypeLoadWeights}
	})
}

// Unload frees the model, whatever it is doing; see Client.UnloadModel.
func (m *Model) Unload(ctx context.Context) error { return m.client.UnloadModel(ctx, m.id) }

// UnloadModel frees a model on the server, and waits for it. It returns ErrUnsupported where the endpoint
// answers 404, 405 or 501; a 404 may also mean that the model is gone.
func (c *Client) UnloadModel(ctx context.Context, modelID string) error {
	ask, err := postJSON(tinker.TypeUnloadModel, tinker.TypeUnloadModel, tinker.ModelRequest{ModelID: modelID, Type: tinker.TypeUnloadModel})
	if err != nil {
		return err
	}
	p, err := c.submit(ctx, ask)
	if e, ok := errors.AsType[*Error](err); ok && (e.Status == http.StatusNotFound || e.Category == tinker.CategoryUnsupported) {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	if err != nil {
		return err
	}
	_, err = redeem(ctx, c, p, decodeResult[tinker.UnloadModelResult](p.op))
	return err
}

// submitJSON submits an operation whose body and result are JSON.
func submitJSON[T any](ctx context.Context, m *Model, op string, body func(seq int64) any) (*Future[T], error) {
	return submitDecoded(ctx, m, op, body, decodeResult[T](op))
}

func submitDecoded[T any](
	ctx context.Context, m *Model, op string, body func(seq int64) any, decode func(reply) (T, error),
) (*Future[T], error) {
	if err := m.turn.take(ctx); err != nil {
		return nil, canceled(op, err)
	}
	defer m.turn.give()
	p, err := m.submit(ctx, func(seq int64) (call, error) { return postJSON(op, op, body(seq)) })
	if err != nil {
		return nil, err
	}
	return fetchInBackground(ctx, m.client, p, decode), nil
}

// submit sends one operation under the next number. The caller has the turn. The number is used up once
// the operation is encoded, whatever comes of it; before that the model stays as it was.
func (m *Model) submit(ctx context.Context, encode func(seq int64) (call, error)) (promise, error) {
	if m.broken != nil {
		return promise{}, fmt.Errorf("%w: %s", ErrModelBroken, m.broken.Error())
	}
	if _, err := m.client.connect(ctx); err != nil {
		return promise{}, err
	}
	ask, err := encode(m.next)
	if err != nil {
		return promise{}, err
	}
	m.next++
	p, err := m.client.submit(ctx, ask)
	if err != nil {
		failed := asExists(asError(ask.op, err))
		m.broken = failed
		return promise{}, failed
	}
	return p, nil
}
