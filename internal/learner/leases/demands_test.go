// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// epoch is the time at which the tests of this package begin.
var epoch = time.Unix(1000, 0)

// demandsOf returns demands of one consumer, whose groups are not known.
func demandsOf(slots ...int64) demands {
	d := newDemands()
	d.set("train", leases(slots...))
	return d
}

func orderOf(d demands) []int64 {
	got := []int64{}
	for e := range d.inOrder(rl.Train, rl.Evaluate) {
		got = append(got, e.lease.Key.Slot)
	}
	return got
}

func TestDemandsKeepTheOrderOfConsumers(t *testing.T) {
	cases := map[string]struct {
		change func(d *demands)
		want   []int64
	}{
		"one consumer":             {func(*demands) {}, []int64{3, 4}},
		"a second one comes after": {func(d *demands) { d.set("evaluation", leases(1)) }, []int64{3, 4, 1}},
		"the first changes": {func(d *demands) { d.set("evaluation", leases(1)); d.set("train", leases(5)) },
			[]int64{5, 1}},
		"the first withdraws":       {func(d *demands) { d.set("evaluation", leases(1)); d.remove("train") }, []int64{1}},
		"nobody knows the consumer": {func(d *demands) { d.remove("evaluation") }, []int64{3, 4}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := demandsOf(3, 4)
			tc.change(&d)
			expect(t, "order", tc.want, orderOf(d))
			expect(t, "entries", len(tc.want), len(d.entries))
		})
	}
}

func TestDemandsReportChanges(t *testing.T) {
	cases := map[string]struct {
		slots []int64
		want  bool
	}{
		"the same groups":   {[]int64{3, 4}, false},
		"another order":     {[]int64{4, 3}, true},
		"one group is less": {[]int64{3}, true},
		"one group is more": {[]int64{3, 4, 5}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := demandsOf(3, 4)
			expect(t, "changed", tc.want, d.set("train", leases(tc.slots...)))
		})
	}
}

func TestDemandsKeepKnownGroupsThatAreStillDemanded(t *testing.T) {
	d := demandsOf(3, 4)
	known := group(4, 4)
	d.entries[key(4)].group = &known
	d.set("train", leases(4, 5))
	expect(t, "the group that stays", true, d.entries[key(4)].isKnown())
	expect(t, "the group that is new", false, d.entries[key(5)].isKnown())
	d.set("train", leases(5))
	d.set("train", leases(4, 5))
	expect(t, "the group that was dropped", false, d.entries[key(4)].isKnown())
}

func TestAdoptLeasesGroupsToWorkersThatPlayThem(t *testing.T) {
	cases := map[string]struct {
		change func(e *entry, w *worker)
		want   string
	}{
		"nobody has the lease":    {func(*entry, *worker) {}, "w0"},
		"another worker has it":   {func(e *entry, _ *worker) { e.worker = "w1" }, "w1"},
		"the group is known":      {func(e *entry, _ *worker) { e.group = &rl.Group{} }, ""},
		"the worker plays it not": {func(_ *entry, w *worker) { w.play(nil) }, ""},
		"the worker is lost":      {func(_ *entry, w *worker) { w.seen = epoch.Add(-time.Hour) }, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, ws := demandsOf(3), newWorkers(time.Minute)
			w := ws.observe("w0", epoch)
			w.play([]rl.Key{key(3), key(9)})
			tc.change(d.entries[key(3)], w)
			d.adopt("w0", &ws, epoch)
			expect(t, "worker", tc.want, d.entries[key(3)].worker)
		})
	}
}

func TestLeasedCountsEpisodes(t *testing.T) {
	d := demandsOf(1, 2, 3, 4)
	d.assign(d.entries[key(1)], "w0")
	d.assign(d.entries[key(2)], "w1")
	d.assign(d.entries[key(3)], "w0")
	d.complete(d.entries[key(3)], &rl.Group{})
	expect(t, "all and own", []int{8, 4}, []int{d.tally.leased, d.tally.byWorker["w0"]})
	expect(t, "free", 1, d.tally.free)
	d.set("train", []exchange.Lease{d.entries[key(1)].lease})
	expect(t, "all and own of those that are demanded", []int{4, 4}, []int{d.tally.leased, d.tally.byWorker["w0"]})
	expect(t, "free of those that are demanded", 0, d.tally.free)
	d.assign(d.entries[key(1)], "")
	expect(t, "workers", 0, len(d.tally.byWorker))
}

func TestReclaimRevokesLeasesThatDidNotArrive(t *testing.T) {
	cases := map[string]struct {
		change func(d *demands, e *entry, w *worker)
		want   string
	}{
		"it is neither played nor stored": {func(*demands, *entry, *worker) {}, ""},
		"it is played":                    {func(_ *demands, _ *entry, w *worker) { w.play([]rl.Key{key(3)}) }, "w0"},
		"it is stored":                    {func(_ *demands, _ *entry, w *worker) { w.stored[key(3)] = rl.Usable }, "w0"},
		"it is known":                     {func(d *demands, e *entry, _ *worker) { d.complete(e, &rl.Group{}) }, "w0"},
		"it was granted lately":           {func(_ *demands, e *entry, _ *worker) { e.granted = epoch }, "w0"},
		"it is another worker's":          {func(d *demands, e *entry, _ *worker) { d.assign(e, "w1") }, "w1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, ws := demandsOf(3), newWorkers(time.Minute)
			e, w := d.entries[key(3)], ws.observe("w0", epoch)
			d.assign(e, "w0")
			e.granted = epoch.Add(-time.Minute)
			tc.change(&d, e, w)
			d.reclaim("w0", w, epoch, renewPatience)
			expect(t, "worker", tc.want, e.worker)
		})
	}
}

func TestWantedAndRevoked(t *testing.T) {
	d, ws := demandsOf(4, 3, 2, 1), newWorkers(time.Minute)
	w := ws.observe("w0", epoch)
	w.hello(exchange.HelloRequest{
		Stored:  []exchange.StoredGroup{{Key: key(2)}, {Key: key(3)}, {Key: key(4)}, {Key: key(9)}},
		Playing: []rl.Key{key(8), key(1), key(7)},
	})
	d.entries[key(4)].group = &rl.Group{}
	d.entries[key(1)].worker = "w0"
	expect(t, "wanted, in order of demand", []rl.Key{key(3), key(2)}, d.wanted(w, epoch))
	expect(t, "revoked, in order of slots", []rl.Key{key(7), key(8)}, d.revoked("w0", w))
	expect(t, "revoked of another worker", []rl.Key{key(1), key(7), key(8)}, d.revoked("w1", w))
}
