// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// recorded lists what a Spending is told.
type recorded struct{ calls []string }

func (r *recorded) add(format string, args ...any) {
	r.calls = append(r.calls, fmt.Sprintf(format, args...))
}

func (r *recorded) Report(worker string, spent exchange.Spent) {
	r.add("%s reports %d", worker, spent.Used.SampledTokens)
}

func (r *recorded) Renew(worker string, spent exchange.Spent, leases []exchange.Progress) {
	next := []int64{}
	for _, lease := range leases {
		next = append(next, lease.Next)
	}
	r.add("%s renews with %d, next %v", worker, spent.Used.SampledTokens, next)
}

func (r *recorded) Unlease(worker string, key rl.Key) { r.add("%s loses %d", worker, key.Slot) }

func (r *recorded) Lose(worker string, unreported int64, _ bool) {
	r.add("%s is lost with %d", worker, unreported)
}

func (r *recorded) Settle(int64) {}

// take returns the calls since it was called last.
func (r *recorded) take() []string {
	calls := slices.Clone(r.calls)
	r.calls = nil
	slices.Sort(calls)
	return calls
}

func spent(sampled int64) exchange.Spent {
	return exchange.Spent{Process: "p", Used: spending.Usage{SampledTokens: sampled}}
}

// TestSpendingOfWorkers expects the calls that follow from what workers do.
func TestSpendingOfWorkers(t *testing.T) {
	f, c := open(t, 0)
	r := &recorded{}
	f.config.Spending, f.config.Request = r, map[string]int64{"math": 10}
	f.demands.taken = r.Unlease
	f.Demand("train", leases(0, 1, 2, 3))
	size := int64(f.demands.entries[key(0)].lease.GroupSize)
	f.config.Request[f.demands.entries[key(0)].lease.Environment] = 10
	most := exchange.UnreportedRequests * size * 10
	hello(t, f, "w0", exchange.HelloRequest{Spent: spent(1)})
	slots(f, "w0", int(2*size))
	f.Renew("w0", exchange.Renewal{Spent: spent(2), Progress: []exchange.Progress{{Key: key(0), Next: 7}, {Key: key(1)}}})
	slots(f, "w0", int(size))
	expect(t, "hello and a renewal", []string{"w0 renews with 2, next " + fmt.Sprint([]int64{7, most}), "w0 reports 1"},
		r.take())
	f.Report("w0", spent(3))
	submit(f, "w0", group(0, 4))
	expect(t, "a group", []string{"w0 reports 3"}, r.take())
	f.Release("w0", []rl.Key{key(1)}, exchange.Drained)
	expect(t, "a lease that is given back", []string{"w0 loses 1"}, r.take())
	f.Disconnected("w0")
	lost := fmt.Sprintf("w0 is lost with %d", most)
	expect(t, "a connection that breaks", []string{lost}, r.take())
	c.now = c.now.Add(31 * time.Second)
	f.Tick()
	if diff := cmp.Diff([]string{lost, "w0 loses 2"}, r.take()); diff != "" {
		t.Errorf("silence (-want +got):\n%s", diff)
	}
}

// TestSpendingOfGroupsThatAreDemandedAgain drops groups that are in play and demands them again, as after a model that
// was thrown away. A worker that released such a group loses it once another is leased it.
func TestSpendingOfGroupsThatAreDemandedAgain(t *testing.T) {
	f, _ := open(t, 0)
	r := &recorded{}
	f.demands.taken = r.Unlease
	f.Demand("train", leases(0, 1))
	hello(t, f, "w0", exchange.HelloRequest{})
	slots(f, "w0", 100)
	f.Demand("train", nil)
	f.Release("w0", []rl.Key{key(0)}, "revoked")
	f.Demand("train", leases(0, 1))
	hello(t, f, "w1", exchange.HelloRequest{})
	slots(f, "w1", 100)
	expect(t, "the group that it plays on is its own, and the other is not", []string{"w0 loses 0"}, r.take())
	f.Cover(9)
	expect(t, "what is remembered of covered groups", 0, len(f.demands.left))
}

// TestSpendingOfGroupsThatAreDemandedAfterHello has a worker play a group on when a learner has started that does not
// demand it yet.
func TestSpendingOfGroupsThatAreDemandedAfterHello(t *testing.T) {
	f, _ := open(t, 0)
	r := &recorded{}
	f.demands.taken = r.Unlease
	hello(t, f, "w0", exchange.HelloRequest{Playing: []rl.Key{key(0)}})
	f.Release("w0", []rl.Key{key(0)}, "revoked")
	f.Demand("train", leases(0))
	hello(t, f, "w1", exchange.HelloRequest{})
	slots(f, "w1", 100)
	expect(t, "another is leased the group", []string{"w0 loses 0"}, r.take())
}
