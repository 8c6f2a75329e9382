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

// recorded lists the calls of a Spending.
type recorded struct{ calls []string }

func (r *recorded) add(format string, args ...any) {
	r.calls = append(r.calls, fmt.Sprintf(format, args...))
}

func (r *recorded) Report(worker string, spent exchange.Spent, ended []rl.Key) {
	r.add("%s reports %d and has ended %v", worker, spent.Used.SampledTokens, slotNumbers(ended))
}

func (r *recorded) Hello(worker string, spent exchange.Spent, groups []exchange.GroupSpent, open []exchange.Progress) {
	r.add("%s says Hello with %d in %d groups, open %v", worker, spent.Used.SampledTokens, len(groups), mostOf(open))
}

func (r *recorded) Renew(worker string, renewal exchange.Renewal) {
	r.add("%s renews with %d, open %v", worker, renewal.Spent.Used.SampledTokens, mostOf(renewal.Progress))
}

// mostOf returns the maximum cost of open leases, by slot.
func mostOf(open []exchange.Progress) map[int64]int64 {
	most := map[int64]int64{}
	for _, lease := range open {
		most[lease.Key.Slot] = lease.Next
	}
	return most
}

func (r *recorded) Lease(worker, process string, key rl.Key) {
	r.add("%s (%s) is given %d", worker, process, key.Slot)
}

func (r *recorded) OpenLease(process string, key rl.Key, most int64) {
	r.add("%s is sent %d with %d", process, key.Slot, most)
}

func (r *recorded) Cover(index int64) { r.add("slots below %d are covered", index) }

func (r *recorded) CoverEvaluation(e exchange.Evaluation) {
	r.add("evaluation %s is covered", e.Digest)
}

func (r *recorded) Lose(worker string) { r.add("%s is lost", worker) }

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

// TestSpendingOfWorkers checks which calls of Spending follow from the messages of workers.
func TestSpendingOfWorkers(t *testing.T) {
	f, c := open(t, 0)
	r := &recorded{}
	f.config.Spending, f.config.Request = r, map[string]int64{"math": 10}
	f.config.LargestGroup = 100
	f.Demand("train", leases(0, 1, 2, 3))
	size := int64(f.demands.entries[key(0)].lease.GroupSize)
	f.config.Request[f.demands.entries[key(0)].lease.Environment] = 10
	most := exchange.UnreportedRequests * size * 10
	hello(t, f, "w0", exchange.HelloRequest{
		Spent: spent(1), Groups: []exchange.GroupSpent{{Key: key(9)}},
		Playing: []rl.Key{key(8), key(9)}, Stored: []exchange.StoredGroup{{Key: key(9)}},
	})
	slots(f, "w0", int(2*size))
	f.Renew("w0", exchange.Renewal{Spent: spent(2), Progress: []exchange.Progress{{Key: key(0), Next: 7}}})
	slots(f, "w0", int(size))
	sent := fmt.Sprintf(" with %d", most)
	expect(t, "hello, leases and a renewal", []string{
		"p is sent 0" + sent, "p is sent 1" + sent, "p is sent 2" + sent,
		"w0 (p) is given 0", "w0 (p) is given 1", "w0 (p) is given 2",
		"w0 renews with 2, open " + fmt.Sprint(map[int64]int64{0: 7, 1: most}),
		"w0 says Hello with 1 in 1 groups, open " + fmt.Sprint(map[int64]int64{8: exchange.UnreportedRequests * 100}),
	}, r.take())
	f.Report("w0", spent(3), []rl.Key{key(0)})
	submit(f, "w0", group(0, 4))
	expect(t, "a group", []string{"w0 reports 3 and has ended [0]"}, r.take())
	f.Renew("w0", exchange.Renewal{Spent: spent(3), Progress: []exchange.Progress{
		{Key: key(0), MembersDone: int(size)}, {Key: key(1)}, {Key: key(2), MembersDone: 1},
	}})
	expect(t, "a renewal that was made before the group had arrived", []string{
		"w0 renews with 3, open " + fmt.Sprint(map[int64]int64{1: most, 2: most / size * (size - 1)}),
	}, r.take())
	f.Release("w0", []rl.Key{key(1)}, exchange.Drained)
	expect(t, "a lease that is given back", nil, r.take())
	f.Disconnected("w0")
	expect(t, "a connection that breaks", []string{"w0 is lost"}, r.take())
	c.now = c.now.Add(31 * time.Second)
	f.Tick()
	if diff := cmp.Diff([]string{"w0 is lost"}, r.take()); diff != "" {
		t.Errorf("silence (-want +got):\n%s", diff)
	}
	f.Cover(1)
	f.CoverEvaluation(exchange.Evaluation{Digest: "e"})
	expect(t, "what is covered", []string{"evaluation e is covered", "slots below 1 are covered"}, r.take())
}

// TestSpendingOfGroupsThatAreAdopted says Hello for a worker that plays a group before the group is demanded.
func TestSpendingOfGroupsThatAreAdopted(t *testing.T) {
	f, _ := open(t, 0)
	r := &recorded{}
	f.config.Spending = r
	hello(t, f, "w0", exchange.HelloRequest{Playing: []rl.Key{key(0)}, Spent: spent(1)})
	f.Demand("train", leases(0))
	expect(t, "it is given the group", []string{
		"w0 (p) is given 0", "w0 says Hello with 1 in 0 groups, open map[0:0]",
	}, r.take())
}
