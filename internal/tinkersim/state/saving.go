// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/future"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/stats"
)

// SaveWeights submits a save of the training state.
func (m *Models) SaveWeights(req tinker.SaveWeightsRequest) (tinker.FutureResponse, error) {
	name := cmp.Or(req.Path, fmt.Sprintf("%06d", req.SeqID))
	return m.submit(req.ModelID, submission{
		op:     tinker.TypeSaveWeights,
		seq:    req.SeqID,
		name:   name,
		digest: digestOf(req),
		kind:   stats.Saving,
		do: func(t *trainer, _ *operation) (future.Result, error) {
			path := tinker.Path{Run: t.run.ID, Kind: tinker.KindState, Name: name}
			data := t.adapter.MarshalState(true)
			save := checkpoint.Save{Path: path, Data: data, Overwrite: req.Overwrite, UserMetadata: req.UserMetadata}
			if _, err := t.save(save, req.TTLSeconds); err != nil {
				return future.Result{}, err
			}
			return jsonResult(tinker.SaveResult{Path: path.String(), Type: tinker.TypeSaveWeights}), nil
		},
	})
}

// save writes a checkpoint of the model.
func (t *trainer) save(save checkpoint.Save, ttlSeconds *int64) (checkpoint.Checkpoint, error) {
	if ttlSeconds != nil {
		if *ttlSeconds <= 0 {
			return checkpoint.Checkpoint{}, userError("ttl_seconds must be positive")
		}
		save.TTL = time.Duration(*ttlSeconds) * time.Second
	}
	saved, err := t.models.store.Save(t.ctx, save)
	if err == nil {
		t.models.counters.CountCheckpoint(t.payer())
	}
	return saved, err
}

// payer returns whom the operations of the model are billed to.
func (t *trainer) payer() stats.Payer {
	return stats.Payer{Session: t.run.Session, BaseModel: t.run.BaseModel, At: t.models.options.Clock()}
}

// SaveSampler submits a save of weights to sample from: under a name, or for one sampling session.
func (m *Models) SaveSampler(req tinker.SaveSamplerRequest) (tinker.FutureResponse, error) {
	if req.Kind != "" && req.Kind != "snapshot" {
		return tinker.FutureResponse{}, badRequest("kind %q is not supported: leave it out, or set it to snapshot", req.Kind)
	}
	if (req.Path == "") == (req.SamplingSessionSeq == nil) {
		return tinker.FutureResponse{}, badRequest("exactly one of path and sampling_session_seq_id must be given")
	}
	identity := req
	if identity.SamplingSessionSeq != nil {
		identity.SamplingSessionSeq = new(int64(0)) // a repetition has a new number
	}
	return m.submit(req.ModelID, submission{
		op:     tinker.TypeSaveSampler,
		seq:    req.SeqID,
		name:   req.Path,
		digest: digestOf(identity),
		kind:   stats.Saving,
		do:     func(t *trainer, _ *operation) (future.Result, error) { return t.saveSampler(req) },
	})
}

// saveSampler saves the current weights, and caches them for sampling.
func (t *trainer) saveSampler(req tinker.SaveSamplerRequest) (future.Result, error) {
	path := tinker.Path{Run: t.run.ID, Kind: tinker.KindSampler, Name: req.Path}
	if req.SamplingSessionSeq != nil {
		path.Kind, path.Name = checkpoint.Ephemeral, strconv.FormatInt(*req.SamplingSessionSeq, 10)
	}
	weights := t.adapter.Snapshot()
	saved, err := t.save(checkpoint.Save{Path: path, Data: weights.Marshal(), UserMetadata: req.UserMetadata},
		req.TTLSeconds)
	if err != nil {
		return future.Result{}, err
	}
	if t.models.options.KeepSamplers {
		t.samplers[path.Name] = t.adapter.Parameters()
	}
	key := keyOf(saved)
	t.models.engine.Keep(string(key), weights)
	if req.SamplingSessionSeq == nil {
		return jsonResult(tinker.SaveResult{Path: path.String(), Type: tinker.TypeSaveSampler}), nil
	}
	id, err := t.models.samplers.add(t.run.Session, *req.SamplingSessionSeq, source{base: t.run.BaseModel, path: path,
		weights: key})
	if err != nil {
		return future.Result{}, userError("%s", err)
	}
	return jsonResult(tinker.SaveResult{SamplingSession: id, Type: tinker.TypeSaveSampler}), nil
}
