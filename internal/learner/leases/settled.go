// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"context"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// Settled are groups of a batch that is not decided yet. They are in slot order, tombstones among them, and no slot before
// them is missing, so that they are the batch's whatever the others turn out to be.
type Settled struct {
	Groups  []rl.Group
	Digests []rl.Digest
}

// Settled waits until the current batch has more settled groups than so many, and returns those after them, or until it
// is decided. It ends early with ctx, or with ErrPolicyMissing.
func (s *BatchSource) Settled(ctx context.Context, taken int) (more Settled, decided bool, err error) {
	err = s.await(ctx, func() bool {
		if _, decided = s.decided(); decided {
			return true
		}
		more = s.settled(taken)
		return len(more.Groups) > 0
	})
	return more, decided, err
}

func (s *BatchSource) settled(taken int) (more Settled) {
	s.mu.Lock()
	defer s.mu.Unlock()
	batches := s.batches()
	if len(batches) == 0 {
		return Settled{}
	}
	for slot := batches[0].First + int64(taken); slot < batches[0].Settled(); slot++ {
		group, digest, ok := s.table.Group(s.key(slot, batches[0].Version))
		if !ok {
			break
		}
		more.Groups, more.Digests = append(more.Groups, group), append(more.Digests, digest)
	}
	return more
}
