// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"math"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// permits are the members that may be played of a group that was leased alone: the members up to an index. The
// learner knows from its permits which member was in play when this process ended.
type permits struct {
	changes wait.Signal

	mu sync.Mutex
	// upTo is the last member that may be played.
	upTo int
}

// of takes over a lease. A lease that is not alone permits all members: the learner sends no permits for it.
func (p *permits) of(lease exchange.Lease) {
	if !lease.Alone {
		p.allow(math.MaxInt)
	}
}

// allow permits the members up to an index.
func (p *permits) allow(member int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if member > p.upTo {
		p.upTo = member
		p.changes.Notify()
	}
}

// await waits until a member may be played. An error is the context's.
func (p *permits) await(ctx context.Context, member int) error {
	_, err := wait.For(ctx, &p.changes, func() (struct{}, bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return struct{}{}, member <= p.upTo
	})
	return err
}

// permit takes over the learner's permits.
func (a *activeGroups) permit(list []exchange.Permit) {
	for _, permit := range list {
		if group := a.get(permit.Key); group != nil {
			group.permits.allow(permit.Member)
		}
	}
}
