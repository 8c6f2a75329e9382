// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// endpoint is a scripted Tinker API. A reply is a number that the seed decides.
type endpoint struct {
	mu       sync.Mutex
	sessions map[string]bool
	weights  map[string]bool
	samplers map[string]bool
	posted   []tinker.SampleRequest
	// fail returns the error of the n-th post. It may be nil.
	fail func(n int, request tinker.SampleRequest) error
	// hold, if it is not nil, delays each reply until it is closed.
	hold chan struct{}
	// inFlight is the number of requests in progress, and most the largest number so far.
	inFlight, most int
}

func newEndpoint() *endpoint {
	return &endpoint{sessions: map[string]bool{"session-1": true}, samplers: map[string]bool{},
		weights: map[string]bool{"tinker://run/sampler_weights/v0": true}}
}

func failureOf(category tinker.Category) error { return &client.Error{Category: category, Op: "test"} }

func (e *endpoint) CreateSamplingSession(_ context.Context, session string, seq int64, path, _ string) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.sessions[session] || !e.weights[path] {
		return "", failureOf(tinker.CategoryNotFound)
	}
	id := fmt.Sprintf("%s:sample:%d", session, seq)
	e.samplers[id] = true
	return id, nil
}

func (e *endpoint) Heartbeat(_ context.Context, session string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.sessions[session] {
		return failureOf(tinker.CategoryNotFound)
	}
	return nil
}

func (e *endpoint) KeepAlive(ctx context.Context, _ string, _ func(error)) { <-ctx.Done() }

func (e *endpoint) Sample(ctx context.Context, request tinker.SampleRequest) (tinker.SampleResult, error) {
	hold, err := e.post(request)
	defer e.change(func() { e.inFlight-- })
	if err != nil {
		return tinker.SampleResult{}, err
	}
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return tinker.SampleResult{}, ctx.Err()
		}
	}
	var result tinker.SampleResult
	for i := range int64(request.NumSamples) {
		seed := *request.SamplingParams.Seed + i
		result.Sequences = append(result.Sequences, tinker.SampledSequence{
			StopReason: tinker.StopReasonStop, Tokens: []int32{' ', '0' + int32(seed%3), 256},
			Logprobs: []float32{-0.25, -0.5, -float32(seed%97) / 97},
		})
	}
	return result, nil
}

func (e *endpoint) post(request tinker.SampleRequest) (hold chan struct{}, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.posted = append(e.posted, request)
	e.inFlight++
	e.most = max(e.most, e.inFlight)
	if e.fail != nil {
		if err := e.fail(len(e.posted)-1, request); err != nil {
			return nil, err
		}
	}
	if !e.samplers[request.SamplingSession] {
		return nil, failureOf(tinker.CategoryNotFound)
	}
	return e.hold, nil
}

func (e *endpoint) change(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
}

func (e *endpoint) inProgress() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.inFlight
}

// mostInFlight returns the largest number of requests that were in progress at once.
func (e *endpoint) mostInFlight() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.most
}

// posts counts the posts by their number.
func (e *endpoint) posts() map[int64]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := map[int64]int{}
	for _, request := range e.posted {
		out[*request.SeqID]++
	}
	return out
}
