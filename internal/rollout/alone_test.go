// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"testing/synctest"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
)

// TestMembersWaitForTheirPermits checks that a member of a group that is leased alone waits for its permit, that a
// permit is never taken back, and that a lease that is not alone permits all members.
func TestMembersWaitForTheirPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := exchange.Lease{GroupSize: 4, Alone: true}
		group := newActiveGroup(lease, func() {})
		active := newActiveGroups(nil)
		active.byKey[lease.Key] = group
		allowed := 0
		go func() {
			for member := range lease.GroupSize {
				if group.permits.await(t.Context(), member) != nil {
					return
				}
				allowed = member + 1
			}
		}()
		steps := []struct {
			permit func()
			want   int
		}{
			{func() {}, 1},
			{func() { active.permit([]exchange.Permit{{Key: lease.Key, Member: 1}}) }, 2},
			{func() { active.permit([]exchange.Permit{{Key: lease.Key, Member: 0}}) }, 2},
			{func() { active.renew(lease) }, 2},
			{func() { active.renew(exchange.Lease{GroupSize: 4}) }, 4},
		}
		for i, step := range steps {
			step.permit()
			synctest.Wait()
			if allowed != step.want {
				t.Errorf("after step %d %d members are allowed, want %d", i, allowed, step.want)
			}
		}
	})
}
