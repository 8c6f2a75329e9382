// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// Pressure collects what the endpoint reports of its load, so that the learner gives out fewer credits. The zero
// Pressure is ready.
type Pressure struct {
	mu        sync.Mutex
	throttled int
	queue     tinker.QueueState
}

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
}

// take gives the answers 429 since the last call, and the state of the queue, which is empty while the endpoint has
// reported nothing.
func (p *Pressure) take() (throttled int, queue string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	throttled, p.throttled = p.throttled, 0
	return throttled, string(p.queue)
}
