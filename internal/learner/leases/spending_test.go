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

func (r *recorded) Hello(worker string, spent exchange.Spent, groups []exchange.GroupSpent) {
	r.add("%s says Hello with %d in %d groups", worker, spent.Used.SampledTokens, len(groups))
}

func (r *recorded) Renew(worker string, renewal exchange.Renewal) {
	next := []int64{}
	for _, lease := range renewal.Progress {
		next = append(next, lease.Next)
	}
	r.add("%s renews with %d, next %v", worker, renewal.Spent.Used.SampledTokens, next)
}

func (r *recorded) Lease(worker, process string, key rl.Key) {
	r.add("%s (%s) is given %d", worker, process, key.Slot)
}

func (r *recorded) Cover(index int64) { r.add("slots below %d are covered", index) }

func (r *recorded) CoverEvaluation(e exchange.Evaluation) {
	r.add("evaluation %s is covered", e.Digest)
}

func (r *recorded) Lose(worker string, unreported int64) {
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
	f.Demand("train", leases(0, 1, 2, 3))
	size := int64(f.demands.entries[key(0)].lease.GroupSize)
	f.config.Request[f.demands.entries[key(0)].lease.Environment] = 10
	most := exchange.UnreportedRequests * size * 10
	hello(t, f, "w0", exchange.HelloRequest{Spent: spent(1), Groups: []exchange.GroupSpent{{Key: key(9)}}})
	slots(f, "w0", int(2*size))
	f.Renew("w0", exchange.Renewal{Spent: spent(2), Progress: []exchange.Progress{{Key: key(0), Next: 7}, {Key: key(1)}}})
	slots(f, "w0", int(size))
	expect(t, "hello, leases and a renewal", []string{
		"w0 (p) is given 0", "w0 (p) is given 1", "w0 (p) is given 2",
		"w0 renews with 2, next " + fmt.Sprint([]int64{7, most}),
		"w0 says Hello with 1 in 1 groups",
	}, r.take())
	f.Report("w0", spent(3))
	submit(f, "w0", group(0, 4))
	expect(t, "a group", []string{"w0 reports 3"}, r.take())
	f.Release("w0", []rl.Key{key(1)}, exchange.Drained)
	expect(t, "a lease that is given back", nil, r.take())
	f.Disconnected("w0")
	lost := fmt.Sprintf("w0 is lost with %d", most)
	expect(t, "a connection that breaks", []string{lost}, r.take())
	c.now = c.now.Add(31 * time.Second)
	f.Tick()
	if diff := cmp.Diff([]string{lost}, r.take()); diff != "" {
		t.Errorf("silence (-want +got):\n%s", diff)
	}
	f.Cover(1)
	f.CoverEvaluation(exchange.Evaluation{Digest: "e"})
	expect(t, "what is covered", []string{"evaluation e is covered", "slots below 1 are covered"}, r.take())
}

// TestSpendingOfGroupsThatAreAdopted has a worker play a group on that nobody demands when it says Hello.
func TestSpendingOfGroupsThatAreAdopted(t *testing.T) {
	f, _ := open(t, 0)
	r := &recorded{}
	f.config.Spending = r
	hello(t, f, "w0", exchange.HelloRequest{Playing: []rl.Key{key(0)}, Spent: spent(1)})
	f.Demand("train", leases(0))
	expect(t, "it is given the group", []string{"w0 (p) is given 0", "w0 says Hello with 1 in 0 groups"}, r.take())
}
