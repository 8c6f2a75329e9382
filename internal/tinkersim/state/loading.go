// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"errors"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/future"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/stats"
)

// LoadState submits a load: into a model, whose first operation it must be, or, without a model_id, into
// a new one.
func (m *Models) LoadState(req tinker.LoadWeightsRequest) (tinker.FutureResponse, error) {
	path, err := tinker.ParsePath(req.Path)
	if err != nil || path.Kind != tinker.KindState {
		return tinker.FutureResponse{}, badRequest("%q is not the path of a training state", req.Path)
	}
	if req.ModelID == "" {
		return m.createByLoad(req, path)
	}
	t, err := m.trainer(req.ModelID)
	if err != nil {
		return tinker.FutureResponse{}, err
	}
	if req.SeqID != 1 {
		return tinker.FutureResponse{}, badRequest("LoadWeights is not permitted with seq_id %d", req.SeqID)
	}
	return t.submit(submission{
		op:     tinker.TypeLoadWeights,
		seq:    req.SeqID,
		name:   req.Path,
		digest: digestOf(req),
		kind:   stats.Saving,
		do: func(_ context.Context, faults fault.OperationFaults) (future.Result, error) {
			adapter, err := t.read(path, req.Optimizer, faults)
			if err != nil {
				return future.Result{}, err
			}
			t.adapter = adapter
			return loadResult(req.Path, t.run.ID), nil
		},
	})
}

func loadResult(path, id string) future.Result {
	return jsonResult(tinker.LoadResult{Path: path, ModelID: id, Type: tinker.TypeLoadWeights})
}

// createByLoad creates a model with the configuration of the saved one, and with its state.
func (m *Models) createByLoad(req tinker.LoadWeightsRequest, path tinker.Path) (tinker.FutureResponse, error) {
	if req.ModelSeq == nil {
		return tinker.FutureResponse{}, badRequest("either model_id or model_seq_id must be given")
	}
	run, err := m.store.Run(path.Run)
	if err != nil {
		return tinker.FutureResponse{}, notFound("checkpoint", req.Path)
	}
	run.UserMetadata = req.UserMetadata
	return m.add(creation{
		op:       tinker.TypeLoadWeights,
		session:  req.Session,
		modelSeq: *req.ModelSeq,
		digest:   digestOf(req),
		name:     req.Path,
		run:      run,
		do: func(t *trainer, faults fault.OperationFaults) (future.Result, error) {
			adapter, err := t.read(path, req.Optimizer, faults)
			if err != nil {
				return future.Result{}, err
			}
			t.adapter = adapter
			return loadResult(req.Path, t.run.ID), m.store.CreateRun(t.run)
		},
	})
}

// read returns the adapter of a saved state, which must have the configuration of the model.
func (t *trainer) read(path tinker.Path, optimizer bool, faults fault.OperationFaults) (*model.Adapter, error) {
	data, err := t.models.readCheckpoint(path, faults)
	if err != nil {
		return nil, err
	}
	base, err := t.models.bases.get(t.run.BaseModel)
	if err != nil {
		return nil, err
	}
	adapter, err := model.UnmarshalState(base, data, optimizer && !faults.Has(fault.ColdAdam))
	switch {
	case errors.Is(err, model.ErrBase):
		return nil, userError("the state of %s was made with another base model than %s", path, t.run.BaseModel)
	case err != nil:
		return nil, fmt.Errorf("decoding %s: %w", path, err)
	}
	saved, own := adapter.Config(), t.config
	saved.Seed, own.Seed = 0, 0
	if saved != own {
		return nil, userError("the state of %s has another LoRA configuration than the model", path)
	}
	return adapter, nil
}

// readCheckpoint reads a checkpoint, unless a fault makes it fail.
func (sh *shared) readCheckpoint(path tinker.Path, faults fault.OperationFaults) ([]byte, error) {
	switch {
	case faults.Has(fault.Missing):
		return nil, fmt.Errorf("reading %s: %w", path, checkpoint.ErrNotFound)
	case faults.Has(fault.Corrupt):
		return nil, fmt.Errorf("reading %s: %w", path, checkpoint.ErrCorrupt)
	}
	return sh.store.Read(path)
}
