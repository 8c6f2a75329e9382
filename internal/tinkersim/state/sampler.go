// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
)

// sampler is a sampling session: weights that samples are asked of by its id.
type sampler struct {
	id      string
	session string
	source
}

// source says which weights a sampler has.
type source struct {
	base string
	// path is zero for the base model itself.
	path    tinker.Path
	weights weightsKey
}

// pathText is the path that clients know the weights by; empty if there is none.
func (s source) pathText() string {
	if s.weights.isBase() || s.path.Kind == checkpoint.Ephemeral {
		return ""
	}
	return s.path.String()
}

// weightsKey names weights for good: another save under the same path has another key.
type weightsKey string

// baseKey is the key of the base model's weights. That of one with another vocabulary has its name behind it.
const baseKey weightsKey = "base"

// isBase says whether the weights are those of a base model itself: no run is called so.
func (k weightsKey) isBase() bool { return strings.HasPrefix(string(k), string(baseKey)) }

// baseKey names the weights of a base model.
func (l *State) baseKey(name string) weightsKey {
	if _, ok := l.options.Vocabularies[name]; ok {
		return baseKey + weightsKey(name)
	}
	return baseKey
}

func keyOf(c checkpoint.Checkpoint) weightsKey {
	return weightsKey(strings.Join([]string{c.Run, string(c.Kind), c.Name, c.Digest}, "/"))
}

// fetchWeights loads the weights of a key for the engine.
func (l *State) fetchWeights(key string) (*model.Weights, error) {
	if name, ok := strings.CutPrefix(key, string(baseKey)); ok {
		return l.baseWeights(name)
	}
	parts := strings.Split(key, "/")
	path := tinker.Path{Run: parts[0], Kind: tinker.Kind(parts[1]), Name: parts[2]}
	run, err := l.store.Run(path.Run)
	if err != nil {
		return nil, err
	}
	base, err := l.baseOf(run.BaseModel)
	if err != nil {
		return nil, err
	}
	data, err := l.store.Read(path)
	if err != nil {
		return nil, err
	}
	if path.Kind != tinker.KindState {
		return model.UnmarshalWeights(base, data)
	}
	adapter, err := model.UnmarshalState(base, data, false)
	if err != nil {
		return nil, fmt.Errorf("decoding %s: %w", path, err)
	}
	return adapter.Snapshot(), nil
}

// baseWeights are those of a base model itself; "" is the built-in one.
func (l *State) baseWeights(name string) (*model.Weights, error) {
	if name == "" {
		return model.BaseWeights(model.Base()), nil
	}
	base, err := l.baseOf(name)
	if err != nil {
		return nil, err
	}
	return model.BaseWeights(base), nil
}

// CreateSamplingSession makes a sampling session, once for each (session, sampling_session_seq_id).
func (l *State) CreateSamplingSession(_ context.Context, req tinker.CreateSamplingSessionRequest) (tinker.CreateSamplingSessionResponse, error) {
	from, err := l.findSource(req.BaseModel, req.ModelPath, req.Session)
	if err != nil {
		return tinker.CreateSamplingSessionResponse{}, err
	}
	id, err := l.addSampler(req.Session, req.Seq, from)
	if err != nil {
		return tinker.CreateSamplingSessionResponse{}, err
	}
	return tinker.CreateSamplingSessionResponse{Type: tinker.TypeCreateSamplingSession, SamplingSession: id}, nil
}

// findSource finds the weights that a path or else a base model's name stands for.
func (l *State) findSource(base, path, session string) (source, error) {
	if path == "" {
		if !l.Knows(base) {
			return source{}, badRequest("base model %q is not supported", base)
		}
		return source{base: base, weights: l.baseKey(base)}, nil
	}
	parsed, err := tinker.ParsePath(path)
	if err != nil {
		return source{}, badRequest("%s", err)
	}
	plan := l.faults.ForOperation(fault.Call{Op: tinker.TypeCreateSamplingSession, Session: session, Model: parsed.Run, Name: path})
	found, err := l.store.Checkpoint(parsed)
	if err != nil || plan.Has(fault.Missing) {
		return source{}, notFound("checkpoint", path)
	}
	run, err := l.store.Run(parsed.Run)
	return source{base: run.BaseModel, path: parsed, weights: keyOf(found)}, err
}

// addSampler registers a sampling session and returns its id. One that is there with the same
// weights is the same one.
func (l *State) addSampler(session string, seq int64, from source) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, err := l.touch(session)
	if err != nil {
		return "", err
	}
	id := fmt.Sprintf("%s:sample:%d", session, seq)
	if before, ok := l.samplers[id]; ok {
		if before.source != from {
			return "", badRequest("sampling session %d exists with other weights", seq)
		}
		return id, nil
	}
	l.samplers[id] = &sampler{id: id, session: session, source: from}
	s.samplers = append(s.samplers, id)
	return id, nil
}

// sampler returns a sampling session whose weights still exist, and keeps its session alive.
func (l *State) sampler(id string) (*sampler, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.samplers[id]
	if !ok {
		return nil, notFound("sampling session", id)
	}
	if _, err := l.touch(s.session); err != nil {
		return nil, notFound("sampling session", id)
	}
	if s.weights.isBase() {
		return s, nil
	}
	found, err := l.store.Checkpoint(s.path)
	if errors.Is(err, checkpoint.ErrNotFound) || (err == nil && keyOf(found) != s.weights) {
		return nil, notFound("checkpoint", s.path.String())
	}
	return s, err
}

// SamplerInfo describes a sampling session.
func (l *State) SamplerInfo(id string) (tinker.Sampler, error) {
	s, err := l.sampler(id)
	if err != nil {
		return tinker.Sampler{}, err
	}
	info := tinker.Sampler{SamplerID: s.id, BaseModel: s.base}
	if path := s.pathText(); path != "" {
		info.ModelPath = &path
	}
	return info, nil
}
