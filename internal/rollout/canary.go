// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// canaries ask samplers for one token after a prompt that every sampler accepts. A sampler that refuses this prompt
// as well is out of order, and its refusal says nothing about an episode's request. Episodes that are refused
// together share an answer.
type canaries struct {
	sessions *sessions
	endpoint Endpoint
	// first is a random number from which this worker counts its requests, so that workers use different numbers.
	first int64

	mu     sync.Mutex
	latest map[weights]*canary
	asked  int64
}

// canary is one question, whose answer is known once done is closed.
type canary struct {
	// begin is closed when the question is asked. Its answer is only for callers that joined before.
	begin, done chan struct{}
	err         error
}

func newCanaries(sessions *sessions, endpoint Endpoint) *canaries {
	return &canaries{sessions: sessions, endpoint: endpoint, first: rand.Int64N(1 << 40)}
}

// knownPrompt returns a prompt that every sampler accepts.
func knownPrompt() tinker.ModelInput { return tinker.Text([]int32{1, 1}) }

// accepts returns nil if the sampler of the weights accepts a request that was posted after the call of accepts.
func (c *canaries) accepts(ctx context.Context, from weights) error {
	for {
		own, asks := c.join(from)
		if asks {
			c.ask(ctx, own, from)
		}
		select {
		case <-own.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		// The context of the caller that asked may have ended.
		if own.err == nil || ctx.Err() != nil || !isCanceled(own.err) {
			return own.err
		}
	}
}

// join returns the next question about a sampler, and whether the caller is to ask it. Callers that join while a
// question is open share the next question.
func (c *canaries) join(from weights) (next *canary, asks bool) {
	c.mu.Lock()
	open := c.latest[from]
	if open != nil && !wait.IsClosed(open.begin) {
		c.mu.Unlock()
		return open, false
	}
	next = &canary{begin: make(chan struct{}), done: make(chan struct{})}
	if c.latest == nil {
		c.latest = map[weights]*canary{}
	}
	c.latest[from] = next
	c.mu.Unlock()
	if open != nil {
		<-open.done
	}
	return next, true
}

// ask asks the question. It has its own sampling session, so that it uses no number of an episode's request.
func (c *canaries) ask(ctx context.Context, own *canary, from weights) {
	defer close(own.done)
	c.mu.Lock()
	c.asked++
	number := c.first + c.asked
	close(own.begin)
	c.mu.Unlock()
	params := tinker.DefaultSampling()
	params.MaxTokens, params.Seed = new(1), new(int64(1))
	_, session, err := c.sessions.sampler(ctx, canarySession(from), from)
	if err == nil {
		_, err = c.endpoint.Sample(ctx, tinker.SampleRequest{
			NumSamples: 1, Prompt: knownPrompt(), SamplingSession: session, SeqID: &number, SamplingParams: params,
		})
	}
	if err != nil {
		own.err = fmt.Errorf("asking the sampler for one token: %w", err)
	}
}

// isCanceled reports whether a question has no answer because the context of the caller that asked it has ended.
func isCanceled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		client.CategoryFrom(err) == tinker.CategoryCanceled
}

// canarySession numbers the sampling session of questions about a sampler.
func canarySession(from weights) int64 {
	return rl.SamplingSession(rl.Train, rl.Genesis(from.path+from.base), "canary")
}
