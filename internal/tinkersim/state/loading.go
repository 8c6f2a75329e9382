// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/future"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
)

// LoadState submits a load: into a model, whose first operation it has to be, or, without a
// model_id, into a new one.
func (l *State) LoadState(_ context.Context, req tinker.LoadWeightsRequest) (tinker.FutureResponse, error) {
	path, err := tinker.ParsePath(req.Path)
	if err != nil || path.Kind != tinker.KindState {
		return tinker.FutureResponse{}, badRequest("%q is not the path of a training state", req.Path)
	}
	if req.ModelID == "" {
		return l.createByLoad(req, path)
	}
	t, err := l.trainer(req.ModelID)
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
		kind:   savingWork,
		do: func(_ context.Context, plan fault.OperationFaults) (future.Result, error) {
			adapter, err := t.read(path, req.Optimizer, plan)
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

// createByLoad makes a model of the kind that the state was saved from, with that state.
func (l *State) createByLoad(req tinker.LoadWeightsRequest, path tinker.Path) (tinker.FutureResponse, error) {
	if req.ModelSeq == nil {
		return tinker.FutureResponse{}, badRequest("either model_id or model_seq_id must be given")
	}
	run, err := l.store.Run(path.Run)
	if err != nil {
		return tinker.FutureResponse{}, notFound("checkpoint", req.Path)
	}
	run.UserMetadata = req.UserMetadata
	return l.bear(birth{
		op:       tinker.TypeLoadWeights,
		session:  req.Session,
		modelSeq: *req.ModelSeq,
		digest:   digestOf(req),
		name:     req.Path,
		run:      run,
		do: func(t *trainer, plan fault.OperationFaults) (future.Result, error) {
			adapter, err := t.read(path, req.Optimizer, plan)
			if err != nil {
				return future.Result{}, err
			}
			t.adapter = adapter
			return loadResult(req.Path, t.run.ID), l.store.CreateRun(t.run)
		},
	})
}

// read returns the adapter of a state, which must be of the model's kind.
func (t *trainer) read(path tinker.Path, optimizer bool, plan fault.OperationFaults) (*model.Adapter, error) {
	data, err := t.life.readCheckpoint(path, plan)
	if err != nil {
		return nil, err
	}
	base, err := t.life.baseOf(t.run.BaseModel)
	if err != nil {
		return nil, err
	}
	adapter, err := model.UnmarshalState(base, data, optimizer && !plan.Has(fault.ColdAdam))
	if err != nil {
		return nil, fmt.Errorf("decoding %s: %w", path, err)
	}
	saved, own := adapter.Config(), t.config
	saved.Seed, own.Seed = 0, 0
	if saved != own {
		return nil, userError("the state of %s is of another LoRA configuration than the model", path)
	}
	return adapter, nil
}

// readCheckpoint reads a checkpoint, unless a fault keeps it from that.
func (l *State) readCheckpoint(path tinker.Path, plan fault.OperationFaults) ([]byte, error) {
	switch {
	case plan.Has(fault.Missing):
		return nil, fmt.Errorf("reading %s: %w", path, checkpoint.ErrNotFound)
	case plan.Has(fault.Corrupt):
		return nil, fmt.Errorf("reading %s: %w", path, checkpoint.ErrCorrupt)
	}
	return l.store.Read(path)
}
