// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// fixture is a ledger with the learner's own usage, which tests set, and the records that were written.
type fixture struct {
	*Ledger
	own     spending.Usage
	records []artifacts.Spending
	failure error
	none    bool
}

func start(t *testing.T, from *fixture) *fixture {
	t.Helper()
	f := &fixture{}
	write := func(_ context.Context, record artifacts.Spending) error {
		if f.failure == nil {
			f.records = append(f.records, record)
		}
		return f.failure
	}
	f.Ledger = New(Config{
		Own: func() spending.Usage { return f.own }, Durable: func() bool { return !f.none }, Write: write, Insist: write,
	})
	if from != nil {
		f.Restore(from.records[len(from.records)-1])
	}
	return f
}

func sampled(n int64) spending.Usage { return spending.Usage{SampledTokens: n} }

// report returns a report of a process with its answered and its open tokens.
func report(process string, answered, open int64) exchange.Spent {
	return exchange.Spent{Process: process, Used: spending.Usage{SampledTokens: answered, UnconfirmedTokens: open}}
}

// leased is a lease in a report: its usage, and the maximum cost of its next requests.
type leased struct{ slot, used, next int64 }

// renew reports the counters and the leases of a process.
func (f *fixture) renew(name string, spent exchange.Spent, leases ...leased) {
	renewal := exchange.Renewal{Spent: spent}
	for _, l := range leases {
		renewal.Progress = append(renewal.Progress, exchange.Progress{Key: key(l.slot), Next: l.next})
		renewal.Groups = append(renewal.Groups, exchange.GroupSpent{Key: key(l.slot), Used: sampled(l.used)})
	}
	f.Renew(name, renewal)
}

// hello says Hello for a process, with the usage of each slot.
func (f *fixture) hello(name string, spent exchange.Spent, used map[int64]int64) {
	var groups []exchange.GroupSpent
	for slot, tokens := range used {
		groups = append(groups, exchange.GroupSpent{Key: key(slot), Used: sampled(tokens)})
	}
	f.Hello(name, spent, groups, nil)
}

func key(slot int64) rl.Key { return rl.Key{Slot: slot} }

// expect compares the sampled tokens and the unconfirmed tokens.
func (f *fixture) expect(t *testing.T, what string, answered, unconfirmed int64) {
	t.Helper()
	used := f.Spent().Usage
	if used.SampledTokens != answered || used.UnconfirmedTokens != unconfirmed {
		t.Errorf("%s: %d tokens sampled and %d unconfirmed, want %d and %d", what, used.SampledTokens, used.UnconfirmedTokens,
			answered, unconfirmed)
	}
}

func TestWorkers(t *testing.T) {
	f := start(t, nil)
	f.own = sampled(1)
	f.hello("w0", report("p0", 10, 3), nil)
	f.expect(t, "a first report", 11, 3)
	f.Report("w0", report("p0", 8, 9), nil)
	f.expect(t, "an older report that comes later", 11, 3)
	f.Lease("w0", "p0", key(1))
	f.Lease("w0", "p0", key(2))
	f.renew("w0", report("p0", 20, 0), leased{1, 4, 50}, leased{2, 5, 60})
	f.expect(t, "a worker that lives asks what it wants", 21, 0)
	f.Report("w0", report("p0", 22, 0), nil)
	f.Lose("w0")
	f.OpenLease("p0", key(4), 7)
	f.Lose("w0")
	f.expect(t, "a lost worker may have asked more", 23, 117)
	f.Lease("w1", "p1", key(1))
	f.expect(t, "what it reported of a lease is given to another", 23, 117)
	f.hello("w1", report("p1", 6, 0), map[int64]int64{1: 6})
	f.expect(t, "the other is given it", 23, 123)
	f.Report("w1", report("p1", 10, 0), nil)
	f.expect(t, "the other samples more", 27, 123)
	f.renew("w0", report("p0", 23, 0))
	f.expect(t, "the worker comes back", 30, 4)
	f.renew("w0", report("p2", 2, 0), leased{3, 2, 40})
	f.expect(t, "another process of its name", 32, 4)
	f.renew("w0", report("p3", 0, 0))
	f.expect(t, "and a third, after which the second is lost", 32, 44)
	f.Report("old", exchange.Spent{Used: sampled(1000)}, nil)
	f.expect(t, "a worker that does not count", 32, 44)
}

// TestGroupOfTwoProcesses leases a group to a second process, and back.
func TestGroupOfTwoProcesses(t *testing.T) {
	f := start(t, nil)
	f.hello("w0", report("p0", 0, 0), nil)
	f.hello("w1", report("p1", 0, 0), nil)
	f.Lease("w0", "p0", key(1))
	f.Lease("w0", "p0", key(2))
	f.renew("w0", report("p0", 20, 0), leased{1, 4, 50}, leased{2, 5, 60})
	f.Report("w0", report("p0", 22, 0), nil)
	f.expect(t, "before", 22, 0)
	f.Lease("w1", "p1", key(1))
	f.expect(t, "nothing falls", 22, 0)
	f.renew("w1", report("p1", 100, 0), leased{1, 100, 0})
	f.expect(t, "the group and what was asked since count once", 116, 6)
	f.renew("w0", report("p0", 22, 0), leased{2, 7, 60})
	f.expect(t, "what was asked since was for another group", 118, 4)
	late := []exchange.GroupSpent{{Key: key(1), Used: sampled(7)}}
	f.Renew("w0", exchange.Renewal{Spent: report("p0", 25, 0), Groups: late})
	f.expect(t, "an answer that comes late", 118, 7)
	f.Cover(2)
	f.Report("w0", report("p0", 26, 0), nil)
	f.expect(t, "what is asked once the group is covered", 119, 7)
	f.renew("w0", report("p0", 20, 0), leased{1, 1, 0})
	f.expect(t, "an older list that comes later", 119, 7)
	f.Lease("w0", "p0", key(2))
	f.Lose("w0")
	f.Lease("w0", "p0", key(2))
	f.expect(t, "a group that its own process is given again", 119, 7)
}

// TestWorkerThatDiesBeforeItListsItsGroups checks that the tokens of a group count once. A worker reports its requests
// and dies before it names their group. Another worker is given the group, which is then covered.
func TestWorkerThatDiesBeforeItListsItsGroups(t *testing.T) {
	f := start(t, nil)
	f.hello("w0", report("p0", 0, 0), nil)
	f.hello("w1", report("p1", 0, 0), nil)
	f.Lease("w0", "p0", key(1))
	f.Report("w0", report("p0", 9, 0), nil)
	f.Lose("w0")
	f.Lease("w1", "p1", key(1))
	f.renew("w1", report("p1", 9, 0), leased{1, 9, 0})
	f.expect(t, "the group counts once", 9, 9)
	f.Cover(2)
	f.expect(t, "the group is covered", 9, 9)
}

// TestProcessThatReturns loses two workers, gives their groups to other workers or to none, and checks the usage when
// the lost processes return.
func TestProcessThatReturns(t *testing.T) {
	first := start(t, nil)
	for i, process := range []string{"p0", "p1"} {
		spent := report(process, 20, 0)
		spent.Uncovered = sampled(12)
		first.hello(process, spent, map[int64]int64{int64(10 * i): 2, int64(10*i + 1): 4, int64(10*i + 2): 6})
	}
	first.Cover(0)
	if err := first.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		between               func(f *fixture) *fixture
		answered, unconfirmed int64
	}{
		"before the barrier ends": {func(f *fixture) *fixture { return f }, 60, 0},
		"after the barrier": {func(f *fixture) *fixture {
			f.Settle(80)
			return f
		}, 60, 0},
		"a group is given to another": {func(f *fixture) *fixture {
			f.Settle(80)
			f.Lease("w2", "p2", key(1))
			f.Lease("w2", "p2", key(12))
			return f
		}, 50, 10},
		"a group was given to another that has asked": {func(f *fixture) *fixture {
			f.Settle(80)
			f.Lease("w2", "p2", key(1))
			f.Lease("w2", "p2", key(12))
			f.hello("w2", report("p2", 10, 0), map[int64]int64{1: 4, 12: 6})
			return f
		}, 60, 10},
		"a group was given to another and is covered": {func(f *fixture) *fixture {
			f.Settle(80)
			f.Lease("w2", "p2", key(1))
			f.hello("w2", report("p2", 4, 0), map[int64]int64{1: 4})
			f.Cover(2)
			return f
		}, 58, 6},
		"a group was given to another in an attempt between": {func(f *fixture) *fixture {
			f.Settle(80)
			f.Lease("w2", "p2", key(1))
			f.hello("w2", report("p2", 4, 0), map[int64]int64{1: 4})
			f.Cover(2)
			if err := f.Write(t.Context()); err != nil {
				t.Fatal(err)
			}
			f = start(t, f)
			f.Cover(2)
			f.hello("w2", report("p2", 4, 0), nil)
			return f
		}, 58, 6},
		"a learner gave nothing to others in an attempt between": {func(f *fixture) *fixture {
			f.Settle(80)
			f.hello("w2", report("p2", 0, 0), map[int64]int64{30: 0})
			f.Lease("w2", "p2", key(30)) // which it plays already
			if err := f.Write(t.Context()); err != nil {
				t.Fatal(err)
			}
			f = start(t, f)
			f.Cover(2)
			return f
		}, 60, 0},
		"both have the group in the attempt after that": {func(f *fixture) *fixture {
			f.Settle(80)
			f.Lease("w2", "p2", key(1))
			if err := f.Write(t.Context()); err != nil {
				t.Fatal(err)
			}
			f = start(t, f)
			f.hello("w2", report("p2", 4, 0), map[int64]int64{1: 4})
			return f
		}, 60, 4},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, first)
			f.Cover(0)
			f.expect(t, "before the workers report", 40, 0)
			f = tc.between(f)
			for i, process := range []string{"p0", "p1"} {
				f.hello(process, report(process, 30, 0),
					map[int64]int64{int64(10 * i): 2, int64(10*i + 1): 4, int64(10*i + 2): 6})
			}
			f.expect(t, "after they return", tc.answered, tc.unconfirmed)
		})
	}
}

func TestNextAttempt(t *testing.T) {
	first := start(t, nil)
	first.own = spending.Usage{SampledTokens: 2, TrainedTokens: 5}
	w0, w1 := report("p0", 20, 1), report("p1", 30, 0)
	w0.Uncovered, w1.Uncovered = sampled(4), sampled(6)
	first.hello("w0", w0, nil)
	first.hello("w1", w1, nil)
	first.Lease("w0", "p0", key(1))
	first.Lease("w1", "p1", key(2))
	first.renew("w0", w0, leased{1, 4, 50})
	first.renew("w1", w1, leased{2, 6, 60})
	if err := first.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	first.own.UnconfirmedTokens = 100
	if err := first.Grant(t.Context(), 107); err != nil {
		t.Fatal(err)
	}
	f := start(t, first)
	f.expect(t, "a step may have been trained on, and workers may have asked more", 52, 100+slack+1+110)
	f.hello("w0", report("p0", 25, 0), map[int64]int64{1: 4})
	f.expect(t, "a worker reports", 52, 100+slack+60+57-52)
	f.Settle(80)
	f.expect(t, "another is given up", 52, 100+slack+60+57-52+40)
	f.Report("w1", report("p1", 31, 0), nil)
	f.expect(t, "it comes back, and others may have been given its groups", 58-6, 100+slack+6)
	f.hello("w1", report("p1", 31, 0), map[int64]int64{2: 6})
	f.expect(t, "nobody was given them", 58, 100+slack)
	if used := f.Spent().Usage; used.TrainedTokens != 5 {
		t.Errorf("%d tokens are trained, want the 5 of the attempt before", used.TrainedTokens)
	}
}

// TestWorkerLostBefore checks that a worker is given up only once, however many attempts begin after that.
func TestWorkerLostBefore(t *testing.T) {
	f := start(t, nil)
	f.renew("w0", report("p0", 20, 0), leased{1, 4, 50})
	for range 3 {
		if err := f.Write(t.Context()); err != nil {
			t.Fatal(err)
		}
		f = start(t, f)
		f.Settle(80)
		f.expect(t, "the worker is given up once", 20, 50+80)
	}
	if err := f.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	f = start(t, f)
	f.Report("w1", report("p1", 7, 0), nil)
	f.Report("w0", report("p0", 22, 3), nil)
	f.expect(t, "it comes back and knows all", 29, 3)
}

// TestEndedRun continues a run that was complete, and whose workers are gone: no leases were granted after its last
// record.
func TestEndedRun(t *testing.T) {
	for ended, want := range map[bool]int64{false: 500, true: 0} {
		first := start(t, nil)
		first.Hello("w0", report("a", 100, 0), nil, nil)
		if ended {
			first.End()
		}
		if err := first.Write(t.Context()); err != nil {
			t.Fatal(err)
		}
		next := start(t, first)
		next.Settle(500)
		if used := next.Spent().Usage; used.SampledTokens != 100 || used.UnconfirmedTokens != want {
			t.Errorf("ended %v: the usage is %+v, want 100 sampled tokens and %d unconfirmed ones", ended, used, want)
		}
	}
}

// TestCoveredAfterTheLastReport continues a run whose worker reported a group before a state covered the group, and
// then disappeared.
func TestCoveredAfterTheLastReport(t *testing.T) {
	for name, tt := range map[string]struct {
		// covered is the first slot that no state covers, and ended is set if the report came with the last group. held and
		// next are the tokens of the worker's groups that stay unconfirmed: held of groups that other workers may have been
		// given, and next of requests that the worker may have made.
		covered    int64
		ended      bool
		held, next int64
	}{
		"all groups":             {covered: 2, ended: true},
		"not the last":           {covered: 1, ended: true, held: 12},
		"no group":               {covered: 0, ended: true, held: 12},
		"a group is in progress": {covered: 0, held: 12, next: 50},
	} {
		t.Run(name, func(t *testing.T) {
			first := start(t, nil)
			first.Cover(0)
			first.hello("w0", report("a", 0, 0), nil)
			first.Lease("w0", "a", key(0))
			first.Lease("w0", "a", key(1))
			spent := report("a", 100, 0)
			spent.Uncovered = sampled(12)
			first.renew("w0", report("a", 94, 0), leased{1, 6, 50})
			var ended []rl.Key
			if tt.ended {
				ended = []rl.Key{key(1)}
			}
			first.Report("w0", spent, ended)
			first.Cover(tt.covered)
			first.End()
			if err := first.Write(t.Context()); err != nil {
				t.Fatal(err)
			}
			next := start(t, first)
			next.Settle(0)
			next.expect(t, "the worker is gone", 100, tt.next)
			next.Lease("w1", "b", key(2))
			next.own = sampled(30)
			next.expect(t, "the learner goes on", 130-tt.held, tt.held+tt.next)
		})
	}
}

// TestWorkersOfOtherAttempts settles two attempts with one worker each: leases that an attempt granted after its
// record are divided among its own workers.
func TestWorkersOfOtherAttempts(t *testing.T) {
	first := start(t, nil)
	first.Hello("w0", report("a", 10, 0), nil, nil)
	if err := first.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := start(t, first)
	second.Hello("w1", report("b", 20, 0), nil, nil)
	if err := second.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	third := start(t, second)
	third.Settle(80)
	third.expect(t, "both are gone", 30, 160)
	third.Hello("w1", report("b", 21, 0), nil, nil)
	third.expect(t, "one comes back", 31, 80)
}

func TestGrant(t *testing.T) {
	f := start(t, nil)
	grant := func(tokens int64, records int) {
		t.Helper()
		if err := f.Grant(t.Context(), tokens); err != nil || len(f.records) != records {
			t.Errorf("granting %d tokens: %v and %d records, want %d", tokens, err, len(f.records), records)
		}
	}
	grant(100, 1)
	grant(100+slack, 1)
	grant(101+slack, 2)
	f.own = spending.Usage{SampledTokens: 40, UnconfirmedTokens: 2}
	if err := f.Write(t.Context()); err != nil || f.records[2].Granted != 42 {
		t.Errorf("Write = %v, and %d tokens are granted, want the 42 that were asked for", err, f.records[2].Granted)
	}
	grant(43, 4)
	f.failure = errors.New("offline")
	if err := f.Grant(t.Context(), 1<<40); !errors.Is(err, f.failure) {
		t.Errorf("Grant = %v, want %v", err, f.failure)
	}
	f.none = true
	if err := f.Grant(t.Context(), 1<<40); err != nil {
		t.Errorf("Grant without a store = %v", err)
	}
}

func TestBoughtTwice(t *testing.T) {
	at := func(step int64) rl.Version { return rl.Version{Step: step, Lineage: rl.Genesis("a")} }
	f := start(t, nil)
	twice := func(f *fixture, what string, want int64) {
		t.Helper()
		if used := f.Spent().Usage; used.BoughtTwiceTokens != want {
			t.Errorf("%s: %d tokens were bought twice, want %d", what, used.BoughtTwiceTokens, want)
		}
	}
	f.own.TrainedTokens = 7
	f.Open(at(0), nil)
	twice(f, "checks are no steps", 0)
	f.own.TrainedTokens += 10
	if got := f.Step(at(1), 2); got.Trained != 10 || got.Usage.TrainedTokens != 17 || got.Seconds != 2 {
		t.Errorf("step 1 is recorded as %+v, want 10 trained tokens of 17 in 2 s", got)
	}
	f.own.TrainedTokens += 20
	f.Open(at(1), nil)
	twice(f, "a model is discarded in step 2", 20)
	f.own.TrainedTokens += 20
	if got := f.Step(at(2), 1); got.Trained != 30 {
		t.Errorf("step 2 is recorded with %d trained tokens, want 30", got.Trained)
	}
	twice(f, "step 2 is made", 20)
	if err := f.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := start(t, f)
	next.own.TrainedTokens = 3
	next.Open(at(1), new(int64(10)))
	twice(next, "the next attempt checks, and begins after step 1", 40)
	next.Open(at(1), nil)
	twice(next, "once more", 40)

	before := start(t, nil)
	before.RestoreRow(spending.Usage{TrainedTokens: 50, BoughtTwiceTokens: 5}, nil, 9)
	before.Open(at(2), new(int64(45)))
	twice(before, "a run of an earlier version of the program", 5)
	if seconds := before.Spent().Seconds; seconds != 9 {
		t.Errorf("%v s were trained, want 9", seconds)
	}
}

// TestRecord compares a record with the record of the next attempt.
func TestRecord(t *testing.T) {
	f := start(t, nil)
	f.own = spending.Usage{TrainedTokens: 5, UnconfirmedTokens: 2}
	f.Open(rl.Version{}, nil)
	f.AddSeconds(3)
	f.hello("w0", report("p0", 20, 1), nil)
	f.renew("w0", report("p0", 20, 1), leased{1, 4, 50})
	if err := f.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := start(t, f)
	if err := next.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := f.records[0]
	want.Earlier, want.Own, want.Granted = spending.Usage{TrainedTokens: 5, UnconfirmedTokens: 2}, spending.Usage{}, 0
	got := next.records[0]
	got.Shown.UnconfirmedTokens, want.Shown.UnconfirmedTokens = 0, 0
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("record of the next attempt (-want +got):\n%s", diff)
	}
}
