// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// Pressure collects the endpoint's reports of its load, so that the learner gives out fewer credits, and the requests
// that the endpoint fails to answer. The zero Pressure is ready.
type Pressure struct {
	mu        sync.Mutex
	throttled int
	queue     tinker.QueueState
	problems  client.Problems
}

const (
	// opSample is the operation of the failures that this package reports.
	opSample = "asample"
	// problemLasts is how long the failure of an abandoned request counts.
	problemLasts = 90 * time.Second
	// problemAfter is how long requests must have failed, without a retry that succeeds, before the problem is reported:
	// at first a retry is likely to succeed.
	problemAfter = 5 * time.Second
)

// Observe takes an event of the client; it is made for client.Config.Observe.
func (p *Pressure) Observe(event client.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case event.Category == tinker.CategoryThrottled && !event.Over:
		p.throttled++
	case event.Category == tinker.CategoryPaused && event.Over:
		p.queue = tinker.QueueActive
	case event.Category == tinker.CategoryPaused:
		p.queue = event.QueueState
	}
	p.problems.Observe(event, time.Now())
}

// fail records a failure for which the client reports no event: an accepted sample failed, or a request was refused.
func (p *Pressure) fail(code problem.Code, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems.Add(client.Problem{Code: code, Op: opSample, Evidence: client.EvidenceOf(err)}, time.Now())
}

// succeed records that a sample has succeeded, and whether it had failed before.
func (p *Pressure) succeed(hadFailed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems.Remove(problem.SamplingRefused)
	if hadFailed {
		p.problems.Remove(problem.EndpointFailing)
	}
}

// take returns the number of answers with 429 since the last call, and the state of the queue, which is empty while the
// endpoint has reported nothing.
func (p *Pressure) take() (throttled int, queue string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	throttled, p.throttled = p.throttled, 0
	return throttled, string(p.queue)
}

// problem returns the problem because of which requests wait; its code is empty if they do not wait.
func (p *Pressure) problem() client.Problem {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems.Lasts, p.problems.After = problemLasts, problemAfter
	newest, _ := p.problems.Newest(time.Now())
	return newest
}
