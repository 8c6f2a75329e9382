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

// canaries ask samplers for one token of a prompt that each of them accepts. A sampler that refuses that as well does
// not refuse the request of an episode, but is out of order. Episodes that are refused together share an answer.
type canaries struct {
	sessions *sessions
	endpoint Endpoint
	// first is the number of this worker's first request. Each worker has another one.
	first int64

	mu     sync.Mutex
	latest map[weights]*canary
	asked  int64
}

// canary is one question, whose answer is known once done is closed.
type canary struct {
	// begin is closed when the question is asked: it answers those alone who had asked for it before.
	begin, done chan struct{}
	err         error
}

func newCanaries(sessions *sessions, endpoint Endpoint) *canaries {
	return &canaries{sessions: sessions, endpoint: endpoint, first: rand.Int64N(1 << 40)}
}

// knownPrompt is a prompt that every sampler accepts.
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

// join returns the next question about a sampler, and whether the caller is to ask it. Those that are refused while a
// question is open share the one after it.
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

// ask asks the question. Its sampling session is another one than the episodes', so that no number of theirs is used.
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
