// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/future"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/stats"
)

// Models holds the models that are trained, each with its trainer. It is safe for concurrent use. Its lock may be taken
// while the lock of Sessions is held, so no method calls Sessions with it held.
type Models struct {
	*shared
	sessions *Sessions
	samplers *Samplers

	mu       sync.Mutex
	trainers map[string]*trainer
	unloaded map[string]bool
}

func newModels(sh *shared, sessions *Sessions, samplers *Samplers) *Models {
	return &Models{shared: sh, sessions: sessions, samplers: samplers, trainers: map[string]*trainer{},
		unloaded: map[string]bool{}}
}

// creation is a request for a new model.
type creation struct {
	// submission has no number; its name is the path of a checkpoint.
	submission
	session  string
	modelSeq int
	run      checkpoint.Run
}

// Create creates a model, once for each (session, model_seq_id).
func (m *Models) Create(req tinker.CreateModelRequest) (tinker.FutureResponse, error) {
	create := submission{op: tinker.TypeCreateModel, digest: digestOf(req), kind: stats.Saving}
	if req.Lora == (tinker.LoraConfig{}) {
		req.Lora = tinker.DefaultLora()
	}
	create.do = func(t *trainer, _ *operation) (future.Result, error) { return t.create(req.Lora.Seed) }
	return m.add(creation{
		submission: create,
		session:    req.Session,
		modelSeq:   req.ModelSeq,
		run: checkpoint.Run{
			BaseModel:      req.BaseModel,
			Rank:           req.Lora.Rank,
			TrainUnembed:   req.Lora.TrainUnembed,
			TrainMLP:       req.Lora.TrainMLP,
			TrainAttention: req.Lora.TrainAttn,
			UserMetadata:   req.UserMetadata,
		},
	})
}

// add adds a model to its session, unless an earlier request has, and starts its trainer.
func (m *Models) add(c creation) (response tinker.FutureResponse, err error) {
	err = m.sessions.use(c.session, func(s *session) error {
		response.ModelID = fmt.Sprintf("%s:train:%d", s.id, c.modelSeq)
		if earlier, ok := s.models[c.modelSeq]; ok {
			if earlier.digest != c.digest {
				return badRequest("model_seq_id %d was used for another model", c.modelSeq)
			}
			response.RequestID = earlier.requestID
			return nil
		}
		c.run.ID, c.run.Session, c.run.Project, c.run.Created = response.ModelID, s.id, s.project, m.options.Clock().UTC()
		response.RequestID, err = m.start(c)
		if err != nil {
			return err
		}
		s.models[c.modelSeq] = accepted{digest: c.digest, requestID: response.RequestID}
		s.runs = append(s.runs, c.run.ID)
		s.onEnd = append(s.onEnd, func() { m.end(c.run.ID) })
		return nil
	})
	if err != nil {
		return tinker.FutureResponse{}, err
	}
	return response, nil
}

// start starts the trainer of a model, which creates the model before anything else, and returns the
// request id of the creation.
func (m *Models) start(c creation) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := newTrainer(m, c.run)
	o := m.newOperation(fault.Call{Op: c.op, Session: c.run.Session, Model: c.run.ID, Name: c.name})
	if err := m.background.start(func() { t.loop(&task{o, c.submission}) }); err != nil {
		return "", err
	}
	m.trainers[c.run.ID] = t
	return o.result.ID(), nil
}

// create creates the adapter and records the run.
func (t *trainer) create(seed *int64) (future.Result, error) {
	base, err := t.models.bases.get(t.run.BaseModel)
	if err != nil {
		return future.Result{}, err
	}
	if t.models.bases.rules[t.run.BaseModel] != nil {
		return future.Result{}, userError("base model %q cannot be trained", t.run.BaseModel)
	}
	config := t.config
	if seed != nil {
		config.Seed = *seed
	}
	if err := config.Validate(); err != nil {
		return future.Result{}, err
	}
	t.adapter = model.NewAdapter(base, config)
	if err := t.models.store.CreateRun(t.run); err != nil {
		return future.Result{}, err
	}
	return jsonResult(tinker.CreateModelResult{ModelID: t.run.ID, Type: tinker.TypeCreateModel}), nil
}

// trainer returns the trainer of a model, and keeps its session alive.
func (m *Models) trainer(id string) (*trainer, error) {
	m.mu.Lock()
	t, ok := m.trainers[id]
	m.mu.Unlock()
	if !ok || m.sessions.keepAlive(t.run.Session) != nil {
		return nil, notFound("model", id)
	}
	m.store.Touch(id)
	return t, nil
}

// cancel removes a model and cancels its work.
func (m *Models) cancel(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t, ok := m.trainers[id]; ok {
		t.cancel()
		delete(m.trainers, id)
	}
}

// end removes a model whose session has ended, with the ephemeral weights that were saved from it.
func (m *Models) end(id string) {
	m.cancel(id)
	m.mu.Lock()
	delete(m.unloaded, id)
	m.mu.Unlock()
	m.store.RemoveEphemeral(id)
}

// Unload removes a model. Its future is resolved when all work of the model has stopped: the listing then has every
// checkpoint that the model will ever save.
func (m *Models) Unload(req tinker.ModelRequest) (tinker.FutureResponse, error) {
	t, err := m.trainer(req.ModelID)
	if err != nil && !m.wasUnloaded(req.ModelID) {
		return tinker.FutureResponse{}, err
	}
	o := m.newOperation(fault.Call{Op: tinker.TypeUnloadModel, Model: req.ModelID})
	if err := m.background.start(func() { m.unload(o, t) }); err != nil {
		return tinker.FutureResponse{}, err
	}
	return tinker.FutureResponse{RequestID: o.result.ID(), ModelID: req.ModelID}, nil
}

func (m *Models) wasUnloaded(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.unloaded[id]
}

// unload carries out an unload. The trainer is nil when an earlier unload removed the model.
func (m *Models) unload(o *operation, t *trainer) {
	err := o.begin(m.background.ctx)
	if err == nil && t != nil {
		m.mu.Lock()
		delete(m.trainers, t.run.ID)
		m.unloaded[t.run.ID] = true
		m.mu.Unlock()
		t.cancel()
		<-t.stopped
	}
	result := tinker.UnloadModelResult{ModelID: o.call.Model, Type: tinker.TypeUnloadModel}
	o.settle(m.background.ctx, jsonResult(result), err)
}

// Info describes a model.
func (m *Models) Info(req tinker.ModelRequest) (tinker.ModelInfo, error) {
	t, err := m.trainer(req.ModelID)
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
