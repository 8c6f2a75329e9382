// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// TestWaitingWorkersAreWokenForLeases checks that workers that wait for leases are woken when there may be one, and
// not when a group is submitted while all others are leased.
func TestWaitingWorkersAreWokenForLeases(t *testing.T) {
	f, _ := open(t, 0)
	hello(t, f, "w0", exchange.HelloRequest{})
	woken := func(act func()) (all, workers bool) {
		anything, leasable := f.Changed(), f.changes.leasable.Changed()
		act()
		closed := func(c <-chan struct{}) bool {
			select {
			case <-c:
				return true
			default:
				return false
			}
		}
		return closed(anything), closed(leasable)
	}
	for _, step := range []struct {
		what    string
		act     func()
		workers bool
	}{
		{"groups are demanded", func() { f.Demand("train", leases(3, 4, 5)) }, true},
		{"a group is submitted while one can be leased", func() {
			expect(t, "leased", []int64{3, 4}, slots(f, "w0", 8))
			submit(f, "w0", group(3, 4))
		}, true},
		{"a group is submitted while all are leased", func() {
			expect(t, "leased", []int64{5}, slots(f, "w0", 8))
			submit(f, "w0", group(4, 4))
		}, false},
		{"a lease is released", func() { f.Release("w0", []rl.Key{key(5)}, exchange.Drained) }, true},
		{"a second has passed", f.Tick, true},
	} {
		all, workers := woken(step.act)
		if !all || workers != step.workers {
			t.Errorf("%s: those who wait for a change are woken: %v, workers: %v, want true, %v", step.what, all, workers,
				step.workers)
		}
	}
}
