// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/gateway/dialect"
)

// digest is the digest of a client's request.
type digest [sha256.Size]byte

func digestOf(endpoint dialect.Endpoint, body []byte) digest {
	sum := sha256.New()
	sum.Write([]byte{byte(endpoint)})
	sum.Write(body)
	return digest(sum.Sum(nil))
}

// call is a request that the policy samples for, whether or not its client stays. The episode's lock guards it.
type call struct {
	key digest
	// done is closed once the call has ended.
	done  chan struct{}
	ended bool
	out   []environment.Completed
	err   error
	// held says that a client waits for the call, and refused that the last client was asked to come back.
	held, refused bool
	// writing says that the reply is being written to a client. An agent that has read it may end before the write
	// returns.
	writing bool
}

// take returns the call for a request: the first call of an equal request whose client has gone, or a new call. It
// returns nil if too many calls are open, with isNew set, or if the episode is over.
func (e *Episode) take(key digest, asked []environment.Completion) (c *call, isNew bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over {
		return nil, false
	}
	for _, c := range e.calls[key] {
		if !c.held {
			c.held, c.refused = true, false
			return c, false
		}
	}
	if e.open >= e.server.config.Open {
		return nil, true
	}
	c = &call{key: key, done: make(chan struct{}), held: true}
	e.calls[key] = append(e.calls[key], c)
	e.open++
	e.sampling++
	go e.sample(c, asked)
	return c, true
}

// leave ends a client's hold on a call. A delivered call is dropped; any other call waits for a client that repeats
// the request.
func (e *Episode) leave(c *call, delivered, refused bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c.held, c.refused, c.writing = false, refused, false
	if !delivered {
		return
	}
	e.open--
	e.calls[c.key] = slices.DeleteFunc(e.calls[c.key], func(other *call) bool { return other == c })
	if len(e.calls[c.key]) == 0 {
		delete(e.calls, c.key)
	}
}

// write notes that the reply of a call is being written to its client.
func (e *Episode) write(c *call) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c.writing = true
}

// sample samples the choices of a call together. They are in the order of their IDs, which follow from the request.
func (e *Episode) sample(c *call, asked []environment.Completion) {
	out, err := e.complete(asked)
	e.mu.Lock()
	c.out, c.err, c.ended = out, err, true
	e.sampling--
	close(e.changed)
	e.changed = make(chan struct{})
	var limit *environment.LimitError
	if errors.As(err, &limit) {
		e.tellLimit(limit)
	}
	e.mu.Unlock()
	close(c.done)
}

// tellLimit notes that the agent learns of a limit. After a limit of a conversation's tokens or turns, the agent may
// go on with another conversation. The caller holds the lock.
func (e *Episode) tellLimit(limit *environment.LimitError) {
	e.limit = limit.Limit
	if limit.Most > 0 || limit.Limit == "turns" {
		return
	}
	select {
	case <-e.limited:
	default:
		close(e.limited)
	}
}

// complete asks for all choices.
func (e *Episode) complete(asked []environment.Completion) ([]environment.Completed, error) {
	out := make([]environment.Completed, len(asked))
	errs := make([]error, len(asked))
	var together sync.WaitGroup
	for i := range asked {
		together.Go(func() {
			out[i], errs[i] = environment.Guard(e.server.config.Logger, "answering an agent",
				func() (environment.Completed, error) { return e.policy.Complete(e.running, asked[i]) })
		})
	}
	together.Wait()
	if err := firstError(errs); err != nil {
		return nil, err
	}
	// Prompts keep their order; the samples of one prompt are sorted by ID.
	for begin := 0; begin < len(asked); {
		end := begin + 1
		for end < len(asked) && isSamePrompt(asked[begin], asked[end]) {
			end++
		}
		slices.SortFunc(out[begin:end], func(a, b environment.Completed) int { return cmp.Compare(a.ID, b.ID) })
		begin = end
	}
	return out, nil
}

// isSamePrompt reports whether two completions of a request are choices of the same prompt.
func isSamePrompt(a, b environment.Completion) bool {
	return a.Text == b.Text && slices.Equal(a.Tokens, b.Tokens)
}

// firstError returns the first error that is not context.Canceled, since it says more; context.Canceled if there is no
// other error; nil if there is none.
func firstError(errs []error) error {
	var first error
	for _, err := range errs {
		if err != nil && (first == nil || errors.Is(first, context.Canceled)) {
			first = err
		}
	}
	return first
}
