// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// Weights are weights to sample from: sampler weights at a path, or a base model if the path is empty.
type Weights struct {
	Path, Base string
	// Step is the step of the run that saved them; 0 for a base model.
	Step int64
}

// Sampler samples from any weights of one endpoint, in sessions that it makes and keeps alive. It is safe for
// concurrent use.
type Sampler struct {
	endpoint *client.Client
	tags     []string
	// alive is the context of heartbeats.
	alive context.Context
	end   context.CancelFunc

	mu sync.Mutex
	// session is the ID of the session at the endpoint; empty if there is none yet.
	session string
	// samplers are the sampling sessions, by their weights.
	samplers map[Weights]string
	// made numbers sampling sessions, and asked requests.
	made, asked int64
}

// NewSampler returns a sampler that has asked the endpoint for nothing yet. Its sessions have the tags, and are kept
// alive until ctx ends or the sampler is closed.
func NewSampler(ctx context.Context, endpoint *client.Client, tags ...string) *Sampler {
	s := &Sampler{endpoint: endpoint, tags: tags, samplers: map[Weights]string{}}
	s.alive, s.end = context.WithCancel(ctx)
	return s
}

// Close ends the session at the endpoint. It waits a few seconds at most.
func (s *Sampler) Close() {
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == "" {
		return
	}
	const patience = 3 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.alive), patience)
	defer cancel()
	_ = s.endpoint.FinishSession(ctx, s.session) // The endpoint ends a session that is not kept alive.
}

// mostLost bounds the consecutive tries whose sampling session the endpoint has lost.
const mostLost = 3

// Sample samples from weights. If the endpoint has lost the session, Sample makes a new one.
func (s *Sampler) Sample(ctx context.Context, from Weights, request tinker.SampleRequest) (tinker.SampleResult, error) {
	for tries := 1; ; tries++ {
		session, number, err := s.open(ctx, from)
		if err != nil {
			return tinker.SampleResult{}, err
		}
		request.SamplingSession, request.SeqID = session, &number
		result, err := s.endpoint.Sample(ctx, request)
		category := client.CategoryFrom(err)
		lost := category == tinker.CategoryNotFound || category == tinker.CategoryFutureLost
		if err == nil || !lost || tries >= mostLost || ctx.Err() != nil {
			return result, err
		}
		s.forget(session)
	}
}

// open returns the sampling session of the weights, and a number for a request in it.
func (s *Sampler) open(ctx context.Context, from Weights) (string, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if id, ok := s.samplers[from]; ok {
		return id, s.asked, nil
	}
	if s.session == "" {
		session, err := s.endpoint.CreateSession(ctx, client.SessionRequest{Tags: s.tags})
		if err != nil {
			return "", 0, fmt.Errorf("opening a session: %w", err)
		}
		s.session = session
		go s.endpoint.KeepAlive(s.alive, session, func(error) { s.lose(session) })
	}
	s.made++
	id, err := s.endpoint.CreateSamplingSession(ctx, s.session, s.made, from.Path, from.Base)
	if err != nil {
		return "", 0, fmt.Errorf("opening the weights %s: %w", from.Path+from.Base, err)
	}
	s.samplers[from] = id
	return id, s.asked, nil
}

// lose forgets a session that the endpoint has lost.
func (s *Sampler) lose(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == session {
		s.session, s.samplers = "", map[Weights]string{}
	}
}

// forget forgets a sampling session that the endpoint does not have, and the session with it, since the endpoint does
// not tell which of the two it lacks.
func (s *Sampler) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range s.samplers {
		if known == id {
			s.session, s.samplers = "", map[Weights]string{}
			return
		}
	}
}
