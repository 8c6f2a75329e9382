// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// clock is a clock that tests set.
type clock struct{ now time.Time }

var lineage = rl.Genesis("spec")

func key(slot int64) rl.Key { return rl.Key{Kind: rl.Train, Slot: slot, Lineage: lineage} }

func lease(slot int64) exchange.Lease {
	return exchange.Lease{Key: key(slot), Environment: "e", GroupSize: 4, MinMembers: 2}
}

func leases(slots ...int64) []exchange.Lease {
	var list []exchange.Lease
	for _, slot := range slots {
		list = append(list, lease(slot))
	}
	return list
}

// group returns a usable group of so many members.
func group(slot int64, members int) rl.Group {
	g := rl.Group{Key: key(slot), Environment: "e", SampledTokens: 10}
	for i := range members {
		g.Members = append(g.Members, rl.Member{
			Index: i, Reward: float64(i), Trajectories: []rl.Trajectory{{Reward: float64(i)}}})
	}
	return g
}

// fixture is a table with its handler: the side of the learner, and the side of the workers.
type fixture struct {
	*Table
	*Handler
}

func newFixture(config Config) *fixture {
	table := NewTable(config)
	return &fixture{Table: table, Handler: table.Handler()}
}

// open makes a table that is open and has a concurrency of 4 groups.
func open(t *testing.T, barrier time.Duration) (*fixture, *clock) {
	t.Helper()
	c := &clock{now: time.Unix(1000, 0)}
	f := newFixture(Config{
		Concurrency: 16, Silence: 30 * time.Second, Barrier: barrier, Logger: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return c.now },
	})
	f.Open()
	return f, c
}

func hello(t *testing.T, f *fixture, worker string, request exchange.HelloRequest) exchange.HelloReply {
	t.Helper()
	reply, err := f.Hello(t.Context(), worker, request)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// silence lets the time pass without messages.
func silence(f *fixture, c *clock, period time.Duration) {
	for ; period > 0; period -= 10 * time.Second {
		c.now = c.now.Add(10 * time.Second)
		f.Tick()
	}
}

func submit(f *fixture, worker string, group rl.Group) *exchange.SubmitReply {
	return f.Submit(worker, group, group.Digest())
}

// slots returns the slots of the leases that a worker is granted at once when it asks.
func slots(f *fixture, worker string, free int) []int64 {
	f.hear(worker)
	granted := f.grant(worker, free)
	got := []int64{}
	for _, l := range granted {
		got = append(got, l.Key.Slot)
	}
	return got
}

func expect[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestLeasesAreGrantedInSlotOrder(t *testing.T) {
	f, _ := open(t, 0)
	f.Demand("train", leases(3, 4, 5, 6, 7))
	f.Demand("evaluation", leases(100, 101))
	hello(t, f, "w0", exchange.HelloRequest{})
	expect(t, "what fits", []int64{3, 4}, slots(f, "w0", 8))
	expect(t, "the rest of the credits", []int64{5, 6}, slots(f, "w0", 64))
	expect(t, "with no credits left", []int64{}, slots(f, "w0", 64))
	expect(t, "status", exchange.Accepted, submit(f, "w0", group(3, 4)).Status)
	expect(t, "after one came back", []int64{7}, slots(f, "w0", 64))
	submit(f, "w0", group(4, 4))
	expect(t, "evaluations come last", []int64{100}, slots(f, "w0", 64))
}

func TestCreditsAreShared(t *testing.T) {
	f, _ := open(t, 0)
	f.Demand("train", leases(0, 1, 2, 3, 4))
	hello(t, f, "w0", exchange.HelloRequest{})
	hello(t, f, "w1", exchange.HelloRequest{})
	expect(t, "half of them", []int64{0, 1}, slots(f, "w0", 64))
	expect(t, "no more than half", []int64{}, slots(f, "w0", 64))
	expect(t, "the other half", []int64{2, 3}, slots(f, "w1", 64))
}

func TestLargeGroupIsLeasedToAnEmptyWorker(t *testing.T) {
	f, _ := open(t, 0)
	large := lease(0)
	large.GroupSize = 40
	f.Demand("train", []exchange.Lease{large})
	hello(t, f, "w0", exchange.HelloRequest{})
	expect(t, "one group, however large", []int64{0}, slots(f, "w0", 2))
}

func TestNothingIsLeasedBeforeTheBarrierEnds(t *testing.T) {
	f, c := open(t, 10*time.Second)
	f.Demand("train", leases(0, 1))
	expect(t, "before", []int64{}, slots(f, "w0", 64))
	c.now = c.now.Add(5 * time.Second)
	reply := hello(t, f, "w1", exchange.HelloRequest{
		Stored: []exchange.StoredGroup{{Key: key(1)}, {Key: key(50)}}, Playing: []rl.Key{key(0), key(60)},
	})
	expect(t, "wanted", []rl.Key{key(1)}, reply.Wanted)
	expect(t, "kept", []exchange.Lease{lease(0)}, reply.Keep)
	c.now = c.now.Add(6 * time.Second)
	expect(t, "no group that a worker has", []int64{}, slots(f, "w0", 64))
	expect(t, "revoked", []rl.Key{key(60)}, f.Directive("w1").Revoked)
}

func TestBarrierEndsWhenAllWorkersHaveSaidHello(t *testing.T) {
	f, _ := open(t, 10*time.Second)
	f.Expect([]string{"w0", "w1"})
	f.Demand("train", leases(0, 1))
	hello(t, f, "w0", exchange.HelloRequest{})
	hello(t, f, "w2", exchange.HelloRequest{})
	expect(t, "while one is missing", []int64{}, slots(f, "w0", 64))
	hello(t, f, "w1", exchange.HelloRequest{})
	expect(t, "when all have said Hello", []int64{0}, slots(f, "w0", 64))
}

// TestExpectedWorkersAfterTwoLearnerDeaths kills a learner before a worker of its predecessor has said Hello, and
// checks that the next learner expects that worker too.
func TestExpectedWorkersAfterTwoLearnerDeaths(t *testing.T) {
	f, c := open(t, 10*time.Second)
	f.Expect([]string{"w0", "w1"})
	hello(t, f, "w1", exchange.HelloRequest{})
	hello(t, f, "w2", exchange.HelloRequest{})
	expect(t, "while one is missing", []string{"w0", "w1", "w2"}, f.Expected())
	c.now = c.now.Add(11 * time.Second)
	expect(t, "after the barrier", []string{"w1", "w2"}, f.Expected())
}

func TestLeasesOfASilentWorkerGoToOthers(t *testing.T) {
	f, c := open(t, 0)
	f.Demand("train", leases(0, 1))
	hello(t, f, "w0", exchange.HelloRequest{Stored: []exchange.StoredGroup{{Key: key(1)}}})
	expect(t, "leased", []int64{0}, slots(f, "w0", 64))
	c.now = c.now.Add(31 * time.Second)
	f.Tick()
	hello(t, f, "w1", exchange.HelloRequest{})
	expect(t, "what it played and what it stored", []int64{0, 1}, slots(f, "w1", 64))
	expect(t, "it comes back, and is stopped", []rl.Key{key(0)},
		f.Renew("w0", exchange.Renewal{Progress: []exchange.Progress{{Key: key(0)}}}).Revoked)
	expect(t, "its group is taken all the same", exchange.Accepted, submit(f, "w0", group(0, 4)).Status)
	expect(t, "the other's is a duplicate", exchange.Duplicate, submit(f, "w1", group(0, 4)).Status)
}

// TestWorkerThatHangsWhileItWaitsForLeases hangs a process that has a lease and asks for another one. Its call for
// leases stays open, and is no sign of life.
func TestWorkerThatHangsWhileItWaitsForLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(Config{
			Concurrency: 16, Silence: 2 * time.Second, Logger: slog.New(slog.DiscardHandler), Now: time.Now,
		})
		f.Open()
		f.Demand("train", leases(0))
		hello(t, f, "hangs", exchange.HelloRequest{})
		hello(t, f, "lives", exchange.HelloRequest{})
		expect(t, "leased", []int64{0}, slots(f, "hangs", 8))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		waiting := make(chan []exchange.Lease, 1)
		go func() {
			got, _ := f.Acquire(ctx, "hangs", 4)
			waiting <- got
		}()
		for range 4 {
			time.Sleep(time.Second)
			f.Renew("lives", exchange.Renewal{})
			f.Tick()
		}
		expect(t, "leased to another", []int64{0}, slots(f, "lives", 8))
		expect(t, "leased to the one that waits", nil, <-waiting)
	})
}

func TestDisconnectedWorkerKeepsItsLeasesForSeconds(t *testing.T) {
	cases := map[string]struct {
		back func(f *fixture)
		want []int64
	}{
		"it stays away": {func(*fixture) {}, []int64{0}},
		"it says Hello on a new connection": {func(f *fixture) {
			hello(t, f, "w0", exchange.HelloRequest{Playing: []rl.Key{key(0)}})
		}, []int64{}},
		"it had done so already and renews": {func(f *fixture) {
			f.Renew("w0", exchange.Renewal{Progress: []exchange.Progress{{Key: key(0)}}})
		}, []int64{}},
		"a call of the broken connection still waits for leases": {func(f *fixture) { f.grant("w0", 64) }, []int64{0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, c := open(t, 0)
			f.Demand("train", leases(0))
			hello(t, f, "w0", exchange.HelloRequest{})
			hello(t, f, "w1", exchange.HelloRequest{})
			expect(t, "leased", []int64{0}, slots(f, "w0", 64))
			f.Disconnected("w0")
			c.now = c.now.Add(redial)
			f.Tick()
			expect(t, "while it may come back", []int64{}, slots(f, "w1", 64))
			tc.back(f)
			c.now = c.now.Add(time.Second)
			f.Tick()
			expect(t, "later", tc.want, slots(f, "w1", 64))
		})
	}
}

func TestLeaseThatDidNotArrive(t *testing.T) {
	f, c := open(t, 0)
	f.Demand("train", leases(0))
	hello(t, f, "w0", exchange.HelloRequest{})
	expect(t, "leased", []int64{0}, slots(f, "w0", 64))
	f.Renew("w0", exchange.Renewal{})
	expect(t, "too early to decide", []int64{}, slots(f, "w0", 64))
	c.now = c.now.Add(21 * time.Second)
	f.Renew("w0", exchange.Renewal{})
	expect(t, "leased again", []int64{0}, slots(f, "w0", 64))
}

func TestSubmitStatuses(t *testing.T) {
	foreign := group(1, 4)
	foreign.Environment = "other"
	stale := group(1, 4)
	stale.Key.Lineage = rl.Genesis("another")
	index := group(1, 4)
	index.Members[3].Index = 4
	cases := map[string]struct {
		group rl.Group
		want  *exchange.SubmitReply
	}{
		"a leased group is accepted": {group(1, 4), &exchange.SubmitReply{Status: exchange.Accepted}},
		"a tombstone is accepted": {group(1, 4).Tombstone(rl.Constant, ""),
			&exchange.SubmitReply{Status: exchange.Accepted}},
		"a group that is known is a duplicate": {group(2, 4), &exchange.SubmitReply{Status: exchange.Duplicate}},
		"a covered slot is closed":             {group(0, 4), &exchange.SubmitReply{Status: exchange.Closed}},
		"a slot that nobody wants is closed":   {group(9, 4), &exchange.SubmitReply{Status: exchange.Closed}},
		"another policy's group is stale":      {stale, &exchange.SubmitReply{Status: exchange.Stale}},
		"another environment's group is wrong": {foreign, &exchange.SubmitReply{Status: exchange.Invalid,
			Field: "environment"}},
		"too many members are wrong": {group(1, 5), &exchange.SubmitReply{Status: exchange.Invalid,
			Field: "members"}},
		"a member beyond the group is wrong": {index, &exchange.SubmitReply{Status: exchange.Invalid,
			Field: "members[3].index"}},
		"a usable group below its floor is wrong": {group(1, 1), &exchange.SubmitReply{Status: exchange.Invalid,
			Field: "outcome"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, _ := open(t, 0)
			f.Demand("train", leases(1, 2))
			f.Cover(1)
			hello(t, f, "w0", exchange.HelloRequest{})
			submit(f, "w0", group(2, 4))
			expect(t, "reply", tc.want, submit(f, "w0", tc.group))
		})
	}
}

func TestClosedGroupIsRequestedOnceItIsDemanded(t *testing.T) {
	f, _ := open(t, 0)
	f.Demand("train", leases(0))
	hello(t, f, "w0", exchange.HelloRequest{})
	submit(f, "w0", group(1, 4))
	f.Demand("train", leases(0, 1))
	expect(t, "wanted", []rl.Key{key(1)}, f.Directive("w0").Wanted)
	expect(t, "leased", []int64{0}, slots(f, "w0", 64))
	f.Cover(2)
	expect(t, "covered", int64(2), f.Directive("w0").CoveredIndex)
}

func TestRejectGroups(t *testing.T) {
	f, _ := open(t, 0)
	f.Demand("train", leases(0))
	hello(t, f, "w0", exchange.HelloRequest{})
	submit(f, "w0", group(0, 4))
	f.Reject(key(0), rl.InvalidTokens, "why")
	got, digest, _ := f.Group(key(0))
	expect(t, "outcome here", rl.InvalidTokens, got.Outcome)
	expect(t, "digest here", got.Digest(), digest)
	want := []exchange.RejectedGroup{{Key: key(0), Outcome: rl.InvalidTokens, Reason: "why"}}
	expect(t, "what the worker receives", want, f.Directive("w0").Rejected)
}

func TestThrottling(t *testing.T) {
	f, c := open(t, 0)
	hello(t, f, "w0", exchange.HelloRequest{})
	expect(t, "at first", 16, f.Directive("w0").Credits)
	expect(t, "after a 429", 8, f.Renew("w0", exchange.Renewal{State: &exchange.WorkerState{Throttled: 3}}).Credits)
	expect(t, "at once after", 8, f.Renew("w0", exchange.Renewal{State: &exchange.WorkerState{Throttled: 1}}).Credits)
	expect(t, "what people read", "Throttled", f.Problem().Code)
	c.now = c.now.Add(3 * time.Second)
	expect(t, "later", 4, f.Renew("w0", exchange.Renewal{State: &exchange.WorkerState{Throttled: 1}}).Credits)
	for range 40 {
		c.now = c.now.Add(time.Second)
		f.Renew("w0", exchange.Renewal{})
		f.Tick()
	}
	expect(t, "when it is over", 16, f.Directive("w0").Credits)
	expect(t, "what people read then", "", f.Problem().Code)
	expect(t, "a paused queue takes no credits", 16,
		f.Renew("w0", exchange.Renewal{State: &exchange.WorkerState{QueueState: "paused_capacity"}}).Credits)
	expect(t, "but is reported", "PausedCapacity", f.Problem().Code)
}

func TestRelease(t *testing.T) {
	f, _ := open(t, 0)
	demand := func(sampler string) {
		list := leases(0, 1)
		for i := range list {
			list[i].Sampler = sampler
		}
		f.Demand("train", list)
	}
	demand("old")
	hello(t, f, "w0", exchange.HelloRequest{})
	slots(f, "w0", 64)
	f.Release("w0", []rl.Key{key(0)}, "policy_gone")
	expect(t, "the old weights are missing", true, f.IsMissing("old"))
	expect(t, "missing weights are not leased", []int64{}, slots(f, "w0", 64))
	demand("new")
	expect(t, "weights that were saved anew are leased", []int64{0}, slots(f, "w0", 64))
	f.Release("w0", []rl.Key{key(1)}, "policy_gone")
	expect(t, "the new weights are missing", false, f.IsMissing("new"))
	expect(t, "the second group is leased again", []int64{1}, slots(f, "w0", 64))
}

func TestHelloWaitsForTheModel(t *testing.T) {
	f := newFixture(Config{Concurrency: 1, Logger: slog.New(slog.DiscardHandler), Now: time.Now})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Hello(ctx, "w0", exchange.HelloRequest{}); err == nil {
		t.Error("Hello was answered before the table was open")
	}
	f.Close()
	if _, err := f.Hello(t.Context(), "w0", exchange.HelloRequest{}); err == nil {
		t.Error("Hello was answered by a table that is closed")
	}
}

// TestReleaseOfAStoredGroup releases a group that a worker reported as stored and has lost since: the group is leased
// to another worker at once.
func TestReleaseOfAStoredGroup(t *testing.T) {
	f, _ := open(t, 0)
	f.Demand("train", leases(0))
	hello(t, f, "w0", exchange.HelloRequest{Stored: []exchange.StoredGroup{{Key: key(0)}}})
	hello(t, f, "w1", exchange.HelloRequest{})
	if got := slots(f, "w1", 64); len(got) != 0 {
		t.Fatalf("slots %v are leased while a worker stores them", got)
	}
	f.Release("w0", []rl.Key{key(0)}, "drain")
	if got := slots(f, "w1", 64); len(got) != 1 {
		t.Errorf("slots %v are leased after the release, want slot 0", got)
	}
}

// TestConstantGroupsAreDropped checks that a group from which nothing can be learned becomes a tombstone in the table.
// The worker keeps the group as it is.
func TestConstantGroupsAreDropped(t *testing.T) {
	f, _ := open(t, 0)
	f.config.DropConstant = func(g rl.Group) bool { return g.IsConstant("") }
	f.Demand("train", leases(0, 1, 2))
	hello(t, f, "w0", exchange.HelloRequest{})
	slots(f, "w0", 64)
	constant, fault := group(1, 2), group(2, 1).Tombstone(rl.EnvironmentFault, "a fault")
	constant.Members[1].Trajectories[0].Reward = constant.Members[0].Trajectories[0].Reward
	for _, g := range []rl.Group{group(0, 2), constant, fault} {
		expect(t, "status", exchange.Accepted, submit(f, "w0", g).Status)
	}
	for slot, want := range []rl.Group{group(0, 2), constant.Tombstone(rl.Constant, ""), fault} {
		got, digest, known := f.Group(key(int64(slot)))
		if !known || got.Outcome != want.Outcome || digest != want.Digest() {
			t.Errorf("slot %d is %v with digest %s, want %v with %s", slot, got.Outcome, digest, want.Outcome, want.Digest())
		}
	}
	expect(t, "status of the same group", exchange.Duplicate, submit(f, "w0", constant).Status)
}
