// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"golang.org/x/sync/semaphore"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// Model is an adapter that the server trains. Its methods may be called concurrently: they submit their operations
// one after the other, and the server executes operations in the order of their submits.
//
// The ctx of a submit also limits the fetching of the result. If it ends before the server responded to the submit,
// the model is broken, because the server may or may not have counted the operation. The model is also broken after
// every other submit that failed permanently, except a Forward that the server rejected: a Forward changes nothing,
// so its number becomes a gap, which servers accept.
type Model struct {
	caller *caller
	id     string
	// submitting is held by the method that submits. It guards next, the number of the next operation, and
	// broken, the error after which the model accepts no operations.
	submitting *semaphore.Weighted
	next       int64
	broken     error
}

// CreateModel creates the model (Session, ModelSeq), or finds it if an earlier response was lost, and waits for it.
func (c *Client) CreateModel(ctx context.Context, r tinker.CreateModelRequest) (*Model, error) {
	r.Type = tinker.TypeCreateModel
	req, err := postJSON(tinker.TypeCreateModel, tinker.TypeCreateModel, r)
	if err != nil {
		return nil, err
	}
	p, err := c.submit(ctx, req)
	if err != nil {
		return nil, err
	}
	created, err := fetchResult(ctx, c.caller, p, decodeResult[tinker.CreateModelResult](p.op))
	if err != nil {
		return nil, err
	}
	if created.ModelID == "" {
		return nil, protocolError(p.op, fmt.Errorf("result has no model_id"))
	}
	return &Model{caller: c.caller, id: created.ModelID, submitting: newLock(), next: 1}, nil
}

// UnloadModel frees a model on the server, and waits until that is done. It returns ErrUnsupported if the endpoint
// responds with 404, 405 or 501; a 404 may also mean that the model does not exist.
func (c *Client) UnloadModel(ctx context.Context, modelID string) error {
	req, err := postJSON(tinker.TypeUnloadModel, tinker.TypeUnloadModel,
		tinker.ModelRequest{ModelID: modelID, Type: tinker.TypeUnloadModel})
	if err != nil {
		return err
	}
	p, err := c.submit(ctx, req)
	if e, ok := errors.AsType[*Error](err); ok &&
		(e.Status == http.StatusNotFound || e.Category == tinker.CategoryUnsupported) {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	if err != nil {
		return err
	}
	_, err = fetchResult(ctx, c.caller, p, decodeResult[tinker.UnloadModelResult](p.op))
	return err
}

// ID returns the model's id, which is also the id of its training run.
func (m *Model) ID() string { return m.id }

// OptimStep applies the accumulated gradients, and clears them.
func (m *Model) OptimStep(ctx context.Context, p tinker.AdamParams) (*Future[tinker.OptimStepResult], error) {
	return submitJSON[tinker.OptimStepResult](ctx, m, tinker.TypeOptimStep, func(seq int64) any {
		return tinker.OptimStepRequest{AdamParams: p, ModelID: m.id, SeqID: seq, Type: tinker.TypeOptimStep}
	})
}

// SaveRequest says under which name to save, and for how long.
type SaveRequest struct {
	// Name consists of letters, digits and - _ . only.
	Name string
	// TTLSeconds is the time until the checkpoint is deleted; 0 means never.
	TTLSeconds int64
	// UserMetadata is stored with a state or with sampler weights. Servers of SDKs before 0.38 may refuse it.
	UserMetadata tinker.Metadata
	// Overwrite lets a state replace another of its name. Without it a late copy of an earlier save is refused.
	Overwrite bool
}

func (r SaveRequest) ttl() *int64 {
	if r.TTLSeconds == 0 {
		return nil
	}
	return &r.TTLSeconds
}

// SaveState saves weights and optimizer under a name. If the name is in use and the request does not overwrite, it
// fails with CategoryExists.
func (m *Model) SaveState(ctx context.Context, r SaveRequest) (*Future[tinker.SaveResult], error) {
	return m.save(ctx, tinker.TypeSaveWeights, func(seq int64) any {
		return tinker.SaveWeightsRequest{ModelID: m.id, Path: r.Name, SeqID: seq, TTLSeconds: r.ttl(),
			Overwrite: r.Overwrite, UserMetadata: r.UserMetadata, Type: tinker.TypeSaveWeights}
	})
}

// SaveSampler saves weights for sampling under a name. If the name is in use, it fails with CategoryExists.
func (m *Model) SaveSampler(ctx context.Context, r SaveRequest) (*Future[tinker.SaveResult], error) {
	return m.save(ctx, tinker.TypeSaveSampler, func(seq int64) any {
		return tinker.SaveSamplerRequest{ModelID: m.id, Path: r.Name, SeqID: seq, TTLSeconds: r.ttl(),
			UserMetadata: r.UserMetadata, Type: tinker.TypeSaveSampler}
	})
}

// SaveExternal saves the weights under a name as files in the format of PEFT. ExternalWeights returns the URLs of the
// files.
func (m *Model) SaveExternal(ctx context.Context, r SaveRequest) (*Future[tinker.SaveResult], error) {
	return m.save(ctx, tinker.TypeSaveExternal, func(seq int64) any {
		return tinker.SaveExternalRequest{ModelID: m.id, Path: r.Name, SeqID: seq, TTLSeconds: r.ttl(),
			Type: tinker.TypeSaveExternal}
	})
}

func (m *Model) save(ctx context.Context, op string, body func(seq int64) any) (*Future[tinker.SaveResult], error) {
	decode := func(resp response) (tinker.SaveResult, error) {
		result, err := decodeResult[tinker.SaveResult](op)(resp)
		if err == nil && result.Path == "" {
			err = protocolError(op, fmt.Errorf("result has no path"))
		}
		return result, err
	}
	return submitDecoded(ctx, m, op, body, decode)
}

// LoadState loads a state into the model, with or without the optimizer's state. Hosted servers allow it only as
// the first operation.
func (m *Model) LoadState(ctx context.Context, path string, optimizer bool) (*Future[tinker.LoadResult], error) {
	return submitJSON[tinker.LoadResult](ctx, m, tinker.TypeLoadWeights, func(seq int64) any {
		return tinker.LoadWeightsRequest{ModelID: m.id, SeqID: seq, Path: path, Optimizer: optimizer,
			Type: tinker.TypeLoadWeights}
	})
}

// submitJSON submits an operation whose body and result are JSON.
func submitJSON[T any](ctx context.Context, m *Model, op string, body func(seq int64) any) (*Future[T], error) {
	return submitDecoded(ctx, m, op, body, decodeResult[T](op))
}

func submitDecoded[T any](
	ctx context.Context, m *Model, op string, body func(seq int64) any, decode func(response) (T, error),
) (*Future[T], error) {
	if err := acquire(ctx, m.submitting); err != nil {
		return nil, canceled(op, err)
	}
	defer m.submitting.Release(1)
	p, err := m.submit(ctx, func(seq int64) (request, error) { return postJSON(op, op, body(seq)) })
	if err != nil {
		return nil, err
	}
	return fetchInBackground(ctx, m.caller, p, decode), nil
}

// submit submits one operation under the next number. The caller holds submitting. The number is used once the
// operation is encoded, whether or not the submit succeeds; before that the model does not change. A body that was
// rejected for its size alone does not use the number, since its parts are sent instead.
func (m *Model) submit(ctx context.Context, encode func(seq int64) (request, error)) (pending, error) {
	if m.broken != nil {
		return pending{}, fmt.Errorf("%w: %s", ErrModelBroken, m.broken.Error())
	}
	if _, err := m.caller.connect(ctx); err != nil {
		return pending{}, err
	}
	req, err := encode(m.next)
	if err != nil {
		return pending{}, err
	}
	m.next++
	req.unrepeatable = m.caller.executesRepeats.Load() && (req.op == opForwardBackward || req.op == tinker.TypeOptimStep)
	p, err := m.caller.submitCharged(ctx, req, req.charge)
	if err != nil {
		failed := asExists(asError(req.op, err))
		if isTooLarge(failed) && !req.indivisible {
			m.next--
			return pending{}, failed
		}
		if req.op != opForward || failed.MayHaveRun {
			m.broken = failed
		}
		return pending{}, failed
	}
	return p, nil
}
