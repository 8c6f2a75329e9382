// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// Samplers holds the sampling sessions and the requests for samples. It is safe for concurrent use. Its lock may be
// taken while the lock of Sessions is held, so no method calls Sessions with it held.
type Samplers struct {
	*shared
	sessions *Sessions

	mu       sync.Mutex
	byID     map[string]*sampler
	requests sampleRequests
}

func newSamplers(sh *shared, sessions *Sessions) *Samplers {
	return &Samplers{
		shared:   sh,
		sessions: sessions,
		byID:     map[string]*sampler{},
		requests: sampleRequests{byKey: map[sampleKey]accepted{}},
	}
}

// sampler is a sampling session: weights that clients sample from by its id.
type sampler struct {
	id      string
	session string
	source
	// ctx ends with the sampling session, and with it the requests for samples that have no result yet.
	ctx context.Context
	end context.CancelFunc
}

// source says which weights a sampler has.
type source struct {
	base string
	// path is zero for a base model.
	path    tinker.Path
	weights weightsKey
}

// pathText is the path by which clients know the weights; empty if it does not exist.
func (s source) pathText() string {
	if s.weights.isBase() || s.path.Kind == checkpoint.Ephemeral {
		return ""
	}
	return s.path.String()
}

// Create creates a sampling session, once for each (session, sampling_session_seq_id).
func (s *Samplers) Create(req tinker.CreateSamplingSessionRequest) (tinker.CreateSamplingSessionResponse, error) {
	from, err := s.findSource(req.BaseModel, req.ModelPath, req.Session)
	if err != nil {
		return tinker.CreateSamplingSessionResponse{}, err
	}
	id, err := s.add(req.Session, req.Seq, from)
	if err != nil {
		return tinker.CreateSamplingSessionResponse{}, err
	}
	return tinker.CreateSamplingSessionResponse{Type: tinker.TypeCreateSamplingSession, SamplingSession: id}, nil
}

// findSource finds the weights at a path, or the weights of a base model if the path is empty.
func (s *Samplers) findSource(base, path, session string) (source, error) {
	if path == "" {
		if !s.bases.has(base) {
			return source{}, badRequest("base model %q is not supported", base)
		}
		return source{base: base, weights: s.bases.key(base)}, nil
	}
	parsed, err := tinker.ParsePath(path)
	if err != nil {
		return source{}, badRequest("%s", err)
	}
	faults := s.faults.ForOperation(fault.Call{Op: tinker.TypeCreateSamplingSession, Session: session, Model: parsed.Run,
		Name: path})
	found, err := s.store.Checkpoint(parsed)
	if err != nil || faults.Has(fault.Missing) {
		return source{}, notFound("checkpoint", path)
	}
	run, err := s.store.Run(parsed.Run)
	return source{base: run.BaseModel, path: parsed, weights: keyOf(found)}, err
}

// add adds a sampling session, unless it exists with the same weights, and returns its id.
func (s *Samplers) add(sessionID string, seq int64, from source) (string, error) {
	id := fmt.Sprintf("%s:sample:%d", sessionID, seq)
	return id, s.sessions.use(sessionID, func(owner *session) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if earlier, ok := s.byID[id]; ok {
			if earlier.source != from {
				return badRequest("sampling session %d exists with other weights", seq)
			}
			return nil
		}
		added := &sampler{id: id, session: sessionID, source: from}
		added.ctx, added.end = context.WithCancel(s.background.ctx)
		s.byID[id] = added
		owner.samplers = append(owner.samplers, id)
		owner.onEnd = append(owner.onEnd, func() { s.remove(id) })
		return nil
	})
}

func (s *Samplers) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if removed, ok := s.byID[id]; ok {
		removed.end()
		delete(s.byID, id)
	}
}

// get returns a sampling session whose weights still exist, and keeps its session alive.
func (s *Samplers) get(id string) (*sampler, error) {
	s.mu.Lock()
	found, ok := s.byID[id]
	s.mu.Unlock()
	if !ok || s.sessions.keepAlive(found.session) != nil {
		return nil, notFound("sampling session", id)
	}
	if found.weights.isBase() {
		return found, nil
	}
	saved, err := s.store.Checkpoint(found.path)
	if errors.Is(err, checkpoint.ErrNotFound) || (err == nil && keyOf(saved) != found.weights) {
		return nil, notFound("checkpoint", found.path.String())
	}
	return found, err
}

// Info describes a sampling session.
func (s *Samplers) Info(id string) (tinker.Sampler, error) {
	found, err := s.get(id)
	if err != nil {
		return tinker.Sampler{}, err
	}
	info := tinker.Sampler{SamplerID: found.id, BaseModel: found.base}
	if path := found.pathText(); path != "" {
		info.ModelPath = &path
	}
	return info, nil
}
