// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/future"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
)

// birth is the request for a new model.
type birth struct {
	op       string
	session  string
	modelSeq int
	digest   digest
	// name is the path of a checkpoint, for faults.
	name string
	run  checkpoint.Run
	do   func(t *trainer, plan fault.OperationFaults) (future.Result, error)
}

// CreateModel makes a model, once for each (session, model_seq_id).
func (l *State) CreateModel(_ context.Context, req tinker.CreateModelRequest) (tinker.FutureResponse, error) {
	same := digestOf(req)
	if req.Lora == (tinker.LoraConfig{}) {
		req.Lora = tinker.DefaultLora()
	}
	return l.bear(birth{
		op:       tinker.TypeCreateModel,
		session:  req.Session,
		modelSeq: req.ModelSeq,
		digest:   same,
		run: checkpoint.Run{
			BaseModel:      req.BaseModel,
			Rank:           req.Lora.Rank,
			TrainUnembed:   req.Lora.TrainUnembed,
			TrainMLP:       req.Lora.TrainMLP,
			TrainAttention: req.Lora.TrainAttn,
			UserMetadata:   req.UserMetadata,
		},
		do: func(t *trainer, _ fault.OperationFaults) (future.Result, error) { return t.create(req.Lora.Seed) },
	})
}

// bear makes the model and starts its goroutine, which creates it before anything else.
func (l *State) bear(b birth) (tinker.FutureResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, err := l.touch(b.session)
	if err != nil {
		return tinker.FutureResponse{}, err
	}
	id := fmt.Sprintf("%s:train:%d", s.id, b.modelSeq)
	if before, ok := s.models[b.modelSeq]; ok {
		if before.digest != b.digest {
			return tinker.FutureResponse{}, badRequest("model_seq_id %d was used for another model", b.modelSeq)
		}
		return tinker.FutureResponse{RequestID: before.requestID, ModelID: id}, nil
	}
	b.run.ID, b.run.Session, b.run.Project, b.run.Created = id, s.id, s.project, l.options.Clock().UTC()
	t := newTrainer(l, b.run)
	o := l.newOperation(fault.Call{Op: b.op, Session: s.id, Model: id, Name: b.name})
	create := &task{operation: o, kind: savingWork, do: func(context.Context) (future.Result, error) { return b.do(t, o.plan) }}
	if err := l.start(func() { t.loop(create) }); err != nil {
		return tinker.FutureResponse{}, err
	}
	l.trainers[id] = t
	s.models[b.modelSeq] = creation{digest: b.digest, requestID: o.promise.ID()}
	s.runs = append(s.runs, id)
	return tinker.FutureResponse{RequestID: o.promise.ID(), ModelID: id}, nil
}

// create makes the adapter and records the run.
func (t *trainer) create(seed *int64) (future.Result, error) {
	base, err := t.life.baseOf(t.run.BaseModel)
	if err != nil {
		return future.Result{}, err
	}
	config := t.config
	if seed != nil {
		config.Seed = *seed
	}
	if err := config.Validate(); err != nil {
		return future.Result{}, err
	}
	t.adapter = model.NewAdapter(base, config)
	if err := t.life.store.CreateRun(t.run); err != nil {
		return future.Result{}, err
	}
	return jsonResult(tinker.CreateModelResult{ModelID: t.run.ID, Type: tinker.TypeCreateModel}), nil
}

// Knows says whether the server has a base model of that name.
func (l *State) Knows(name string) bool {
	_, ok := l.bases[name]
	return ok
}

// trainer returns a model, and keeps its session alive.
func (l *State) trainer(id string) (*trainer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t, ok := l.trainers[id]
	if !ok {
		return nil, notFound("model", id)
	}
	if _, err := l.touch(t.run.Session); err != nil {
		return nil, notFound("model", id)
	}
	l.store.Touch(id)
	return t, nil
}

// forget takes a model off the list.
func (l *State) forget(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.trainers, id)
}

// UnloadModel ends a model. Its promise is kept when nothing of the model goes on any more: what is
// listed then is all that it will ever have saved.
func (l *State) UnloadModel(_ context.Context, req tinker.ModelRequest) (tinker.FutureResponse, error) {
	t, err := l.trainer(req.ModelID)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil && !l.unloaded[req.ModelID] {
		return tinker.FutureResponse{}, err
	}
	o := l.newOperation(fault.Call{Op: tinker.TypeUnloadModel, Model: req.ModelID})
	if err := l.start(func() { l.unload(o, t) }); err != nil {
		return tinker.FutureResponse{}, err
	}
	return tinker.FutureResponse{RequestID: o.promise.ID(), ModelID: req.ModelID}, nil
}

// unload carries an unload out; the trainer is nil when that was done before.
func (l *State) unload(o *operation, t *trainer) {
	err := o.begin(l.ctx)
	if err == nil && t != nil {
		l.mu.Lock()
		delete(l.trainers, t.run.ID)
		l.unloaded[t.run.ID] = true
		l.mu.Unlock()
		t.cancel()
		<-t.stopped
	}
	result := tinker.UnloadModelResult{ModelID: o.call.Model, Type: tinker.TypeUnloadModel}
	o.settle(l.ctx, jsonResult(result), err)
}

// ModelInfo describes a model.
func (l *State) ModelInfo(_ context.Context, req tinker.ModelRequest) (tinker.ModelInfo, error) {
	t, err := l.trainer(req.ModelID)
	if err != nil {
		return tinker.ModelInfo{}, err
	}
	return tinker.ModelInfo{
		Type:      tinker.TypeGetInfo,
		ModelID:   t.run.ID,
		IsLora:    new(true),
		LoraRank:  new(t.run.Rank),
		ModelName: t.run.BaseModel,
		ModelData: tinker.ModelData{Arch: "tinkersim", ModelName: t.run.BaseModel, TokenizerID: t.run.BaseModel},
	}, nil
}

// Capabilities lists the names of the base model.
func (l *State) Capabilities() tinker.ServerCapabilities {
	var models []tinker.SupportedModel
	for _, name := range slices.Concat(l.options.BaseModels, slices.Sorted(maps.Keys(l.options.Vocabularies))) {
		models = append(models, tinker.SupportedModel{
			ModelName: name, MaxContextLength: model.MaxContext, Trainable: new(true), Sampleable: new(true),
		})
	}
	return tinker.ServerCapabilities{SupportedModels: models}
}
