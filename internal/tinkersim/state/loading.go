// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/future"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/stats"
)

// LoadState submits a load into a model, whose first operation it must be. Without a model_id, the load creates a new
// model.
func (m *Models) LoadState(req tinker.LoadWeightsRequest) (tinker.FutureResponse, error) {
	path, err := tinker.ParsePath(req.Path)
	if err != nil || path.Kind != tinker.KindState {
		return tinker.FutureResponse{}, badRequest("%q is not the path of a training state", req.Path)
	}
	if req.ModelID == "" {
		return m.createByLoad(req, path)
	}
	if req.SeqID != 1 {
		return tinker.FutureResponse{}, badRequest("LoadWeights is not permitted with seq_id %d", req.SeqID)
	}
	load := loadOf(req, path)
	load.seq = req.SeqID
	return m.submit(req.ModelID, load)
}

// loadOf returns the submission of a load, without its number.
func loadOf(req tinker.LoadWeightsRequest, path tinker.Path) submission {
	return submission{
		op:     tinker.TypeLoadWeights,
		name:   req.Path,
		digest: digestOf(req),
		kind:   stats.Saving,
		do: func(t *trainer, o *operation) (future.Result, error) {
			adapter, err := t.read(path, req.Optimizer, o.faults)
			if err != nil {
				return future.Result{}, err
			}
			t.adapter = adapter
			return jsonResult(tinker.LoadResult{Path: req.Path, ModelID: t.run.ID, Type: tinker.TypeLoadWeights}), nil
		},
	}
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
	load := loadOf(req, path)
	read := load.do
	load.do = func(t *trainer, o *operation) (future.Result, error) {
		result, err := read(t, o)
		if err != nil {
			return future.Result{}, err
		}
		return result, m.store.CreateRun(t.run)
	}
	return m.add(creation{submission: load, session: req.Session, modelSeq: *req.ModelSeq, run: run})
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
	saved := adapter.Config()
	saved.Seed = 0
	if saved != t.config {
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
