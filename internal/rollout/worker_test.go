// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rollout/groupstore"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

func TestWorkerStoresGroupsUntilTheyAreCovered(t *testing.T) {
	b, s, api := newScriptedLearner(slots(5)...), newLearnerService(t), newEndpoint()
	evaluation := rl.Key{Kind: rl.Evaluate, Lineage: version0, Evaluation: "plan"}
	b.put(evaluation)
	s.serve(b, 1)
	r := s.start("worker-0", api, nil)
	keys := append(slots(5), evaluation)
	arrive(t, b, keys...)
	if diff := cmp.Diff(keys, r.stored()); diff != "" {
		t.Errorf("accepted groups stay stored (-want +got):\n%s", diff)
	}
	group, _ := b.group(trainKey(3))
	if err := group.Validate(); err != nil || len(group.Members) != 4 || group.Environment != "arithmetic" {
		t.Errorf("group %+v, %v", group, err)
	}
	if group, _ := b.group(evaluation); len(group.Members) != 2 {
		t.Errorf("the evaluation has %d members, want 2", len(group.Members))
	}
	b.change(func() { b.directive.CoveredIndex = 3 })
	eventually(t, "covered groups are dropped", func() bool { return len(r.stored()) == 3 })
	b.change(func() {
		b.directive.CoveredEvaluations = []exchange.Evaluation{{Digest: "plan", Lineage: version0}}
		b.directive.CoveredIndex = 1
	})
	eventually(t, "a durable evaluation is dropped", func() bool { return len(r.stored()) == 2 })
	if diff := cmp.Diff([]rl.Key{trainKey(3), trainKey(4)}, r.stored()); diff != "" {
		t.Errorf("stored groups (-want +got):\n%s", diff)
	}
	if !r.worker.Ready() {
		t.Error("the worker is not ready")
	}
	if err := r.stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestTwoWorkersGiveTheSameGroups(t *testing.T) {
	digests := map[string]map[rl.Key]rl.Digest{}
	for _, name := range []string{"worker-0", "worker-1"} {
		b, s := newScriptedLearner(slots(6)...), newLearnerService(t)
		s.serve(b, 1)
		s.start(name, newEndpoint(), nil)
		arrive(t, b, slots(6)...)
		digests[name] = map[rl.Key]rl.Digest{}
		for _, key := range slots(6) {
			group, _ := b.group(key)
			digests[name][key] = group.Digest()
		}
	}
	if diff := cmp.Diff(digests["worker-0"], digests["worker-1"]); diff != "" {
		t.Errorf("digests (-first +second):\n%s", diff)
	}
}

func TestCreditsBoundRequestsInFlight(t *testing.T) {
	b, s, api := newScriptedLearner(slots(8)...), newLearnerService(t), newEndpoint()
	b.directive.Credits = 5
	s.serve(b, 1)
	s.start("worker-0", api, nil)
	arrive(t, b, slots(8)...)
	if most := api.mostInFlight(); most > 5 {
		t.Errorf("%d samples were in flight with 5 credits", most)
	}
	for _, free := range see(b, func() []int { return slices.Clone(b.free) }) {
		if free < 1 {
			t.Errorf("leases were asked for with room for %d", free)
		}
	}
}

func TestAWorkerWithRoomForOneGroup(t *testing.T) {
	b, s, api := newScriptedLearner(slots(8)...), newLearnerService(t), newEndpoint()
	b.directive.Credits = 1
	s.serve(b, 1)
	store, err := groupstore.Open(groupstore.Config{MemoryBytes: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	r := s.start("worker-0", api, func(c *Config) { c.Groups = store })
	arrive(t, b, slots(8)...)
	if most := api.mostInFlight(); most != 1 {
		t.Errorf("%d samples were in flight with one credit", most)
	}
	eventually(t, "one group is stored", func() bool { return len(r.stored()) == 1 })
}

// TestLearnerRestart ends a learner, which loses everything that it had in memory. The next learner gets the stored
// groups, and groups in progress continue.
func TestLearnerRestart(t *testing.T) {
	first, s, api := newScriptedLearner(slots(3)...), newLearnerService(t), newEndpoint()
	endFirst := s.serve(first, 1)
	r := s.start("worker-0", api, nil)
	arrive(t, first, slots(3)...)
	hold := make(chan struct{})
	api.change(func() { api.hold = hold })
	first.put(trainKey(3), trainKey(4))
	eventually(t, "two groups are in progress", func() bool { return api.inProgress() == 8 })
	endFirst()
	second := newScriptedLearner()
	s.serve(second, 2)
	arrive(t, second, slots(3)...)
	close(hold)
	arrive(t, second, slots(5)...)
	hello := see(second, func() exchange.HelloRequest { return second.hellos[0] })
	if len(hello.Stored) != 3 || len(hello.Playing) != 2 {
		t.Errorf("Hello listed %d stored, %d playing", len(hello.Stored), len(hello.Playing))
	}
	for number, n := range api.posts() {
		if n != 1 {
			t.Errorf("sample %d was bought %d times", number, n)
		}
	}
	if diff := cmp.Diff(slots(5), r.stored()); diff != "" {
		t.Errorf("stored groups (-want +got):\n%s", diff)
	}
}

// TestSpilledGroupsAreGivenToTheNextLearner checks that groups that do not fit into memory are stored in files and
// submitted from there.
func TestSpilledGroupsAreGivenToTheNextLearner(t *testing.T) {
	first, s, dir := newScriptedLearner(slots(6)...), newLearnerService(t), t.TempDir()
	store, err := groupstore.Open(groupstore.Config{Dir: dir, MemoryBytes: 1, DiskBytes: 1 << 20,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	end := s.serve(first, 1)
	r := s.start("worker-0", newEndpoint(), func(c *Config) { c.Groups = store })
	arrive(t, first, slots(6)...)
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 6 {
		t.Errorf("%d files, %v, want 6", len(files), err)
	}
	end()
	second := newScriptedLearner()
	s.serve(second, 2)
	arrive(t, second, slots(6)...)
	for _, key := range slots(6) {
		one, _ := first.group(key)
		other, _ := second.group(key)
		if diff := cmp.Diff(one, other); diff != "" {
			t.Errorf("slot %d (-first +second):\n%s", key.Slot, diff)
		}
	}
	if diff := cmp.Diff(slots(6), r.stored()); diff != "" {
		t.Errorf("stored groups (-want +got):\n%s", diff)
	}
}

func TestLearnerThatRequestsNoGroups(t *testing.T) {
	first, s, api := newScriptedLearner(slots(2)...), newLearnerService(t), newEndpoint()
	endFirst := s.serve(first, 1)
	r := s.start("worker-0", api, nil)
	arrive(t, first, slots(2)...)
	hold := make(chan struct{})
	api.change(func() { api.hold = hold })
	first.put(trainKey(2))
	eventually(t, "a group is in progress", func() bool { return api.inProgress() == 4 })
	endFirst()
	second := newScriptedLearner()
	second.wantsStored, second.keepsLease = false, false
	s.serve(second, 2)
	eventually(t, "the lease that is not kept is released", func() bool { return api.inProgress() == 0 })
	if diff := cmp.Diff(slots(2), r.stored()); diff != "" {
		t.Errorf("groups that nobody wants are kept (-want +got):\n%s", diff)
	}
	if n := see(second, func() int { return len(second.submits) }); n != 0 {
		t.Errorf("%d groups were submitted unasked", n)
	}
	// Later, the learner requests a group that is stored, and a group that no worker has.
	second.change(func() { second.directive.Wanted = []rl.Key{trainKey(1), trainKey(2)} })
	arrive(t, second, trainKey(1))
	eventually(t, "a wanted group that cannot be played is released", func() bool {
		return see(second, func() string { return second.released[trainKey(2)] }) == "drain"
	})
}

// TestSupersededLearner checks that a worker ignores a learner of an earlier attempt to which the Service still
// points.
func TestSupersededLearner(t *testing.T) {
	second, s, api := newScriptedLearner(slots(2)...), newLearnerService(t), newEndpoint()
	endSecond := s.serve(second, 2)
	r := s.start("worker-0", api, nil)
	arrive(t, second, slots(2)...)
	endSecond()
	superseded := newScriptedLearner()
	superseded.directive.CoveredIndex = 2
	endSuperseded := s.serve(superseded, 1)
	eventually(t, "the superseded learner learns of the higher attempt", func() bool { return s.fenced.Load() == 1 })
	if diff := cmp.Diff(slots(2), r.stored()); diff != "" {
		t.Errorf("a superseded learner's covered index was applied (-want +got):\n%s", diff)
	}
	endSuperseded()
	if n := see(superseded, func() int { return len(superseded.hellos) }); n != 0 {
		t.Errorf("the superseded learner received %d offers of stored groups", n)
	}
	third := newScriptedLearner(trainKey(2))
	s.serve(third, 3)
	arrive(t, third, slots(3)...)
}

func TestRevokedLeases(t *testing.T) {
	b, s, api := newScriptedLearner(slots(2)...), newLearnerService(t), newEndpoint()
	hold := make(chan struct{})
	api.hold = hold
	s.serve(b, 1)
	r := s.start("worker-0", api, nil)
	eventually(t, "two groups are in progress", func() bool { return api.inProgress() == 8 })
	b.change(func() { b.directive.Revoked = []rl.Key{trainKey(0)} })
	eventually(t, "one is released", func() bool { return api.inProgress() == 4 })
	close(hold)
	arrive(t, b, trainKey(1))
	if diff := cmp.Diff([]rl.Key{trainKey(1)}, r.stored()); diff != "" {
		t.Errorf("stored groups (-want +got):\n%s", diff)
	}
}

func TestSIGTERM(t *testing.T) {
	b, s, api := newScriptedLearner(slots(2)...), newLearnerService(t), newEndpoint()
	dir := t.TempDir()
	open := func() *groupstore.Store {
		store, err := groupstore.Open(groupstore.Config{Dir: dir, MemoryBytes: 1 << 20, DiskBytes: 1 << 20,
			Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	s.serve(b, 1)
	r := s.start("worker-0", api, func(c *Config) { c.Groups, c.Grace = open(), time.Second })
	arrive(t, b, slots(2)...)
	api.change(func() { api.hold = make(chan struct{}) })
	b.put(trainKey(2))
	eventually(t, "a group is in progress", func() bool { return api.inProgress() == 4 })
	if err := r.stop(); err != nil {
		t.Fatalf("Run: %v", err)
	}
	if reason := see(b, func() string { return b.released[trainKey(2)] }); reason != "drain" {
		t.Errorf("the lease was released for %q", reason)
	}
	if reason := see(b, func() string { return b.released[trainKey(1)] }); reason != "" {
		t.Errorf("a stored group was released for %q", reason)
	}
	// The next process in the pod has the groups that this one stored, and sends them to the next learner.
	next := newScriptedLearner()
	s.serve(next, 2)
	again := s.start("worker-0", newEndpoint(), func(c *Config) { c.Groups = open() })
	arrive(t, next, slots(2)...)
	if diff := cmp.Diff(slots(2), again.stored()); diff != "" {
		t.Errorf("stored groups (-want +got):\n%s", diff)
	}
}

func TestSIGTERMWithoutStoredGroups(t *testing.T) {
	b, s := newScriptedLearner(trainKey(0)), newLearnerService(t)
	s.serve(b, 1)
	r := s.start("worker-0", newEndpoint(), func(c *Config) { c.Grace = time.Hour })
	arrive(t, b, trainKey(0))
	b.change(func() { b.directive.CoveredIndex = 1 })
	if err := r.stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestSIGTERMWithoutALearner(t *testing.T) {
	s := newLearnerService(t)
	if err := s.start("worker-0", newEndpoint(), nil).stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestRefusedGroupBecomesATombstone(t *testing.T) {
	b, s := newScriptedLearner(trainKey(0)), newLearnerService(t)
	b.refuses[trainKey(0)] = "members"
	s.serve(b, 1)
	r := s.start("worker-0", newEndpoint(), nil)
	arrive(t, b, trainKey(0))
	group, _ := b.group(trainKey(0))
	if group.Outcome != rl.InvalidTokens || len(group.UsableMembers()) != 0 || group.SampledTokens == 0 {
		t.Errorf("what came is %+v", group)
	}
	if h := r.store.List(); len(h) != 1 || h[0].Outcome != rl.InvalidTokens {
		t.Errorf("the stored groups are %+v", h)
	}
}

func TestRejectedGroups(t *testing.T) {
	b, s := newScriptedLearner(slots(2)...), newLearnerService(t)
	s.serve(b, 1)
	r := s.start("worker-0", newEndpoint(), nil)
	arrive(t, b, slots(2)...)
	b.change(func() {
		b.directive.Rejected = []exchange.RejectedGroup{
			{Key: trainKey(1), Outcome: rl.InvalidTokens, Reason: "bisected"},
			{Key: trainKey(7), Outcome: rl.InvalidTokens, Reason: "of somebody else"},
		}
	})
	eventually(t, "the group is a tombstone", func() bool {
		h, ok := r.store.Lookup(trainKey(1))
		return ok && h.Outcome == rl.InvalidTokens
	})
	if h, _ := r.store.Lookup(trainKey(0)); h.Outcome != rl.Usable {
		t.Errorf("another group is %v", h.Outcome)
	}
	if n := see(b, func() int { return b.submits[trainKey(1)] }); n != 1 {
		t.Errorf("it was submitted %d times", n)
	}
}

func TestThrottlingIsReported(t *testing.T) {
	b, s := newScriptedLearner(), newLearnerService(t)
	pressure := &Pressure{}
	s.serve(b, 1)
	s.start("worker-0", newEndpoint(), func(c *Config) { c.Pressure = pressure })
	for range 3 {
		pressure.Observe(client.Event{Category: tinker.CategoryThrottled})
	}
	pressure.Observe(client.Event{Category: tinker.CategoryThrottled, Over: true})
	eventually(t, "three answers 429 are reported", func() bool { return see(b, func() int { return b.throttled }) == 3 })
}

func TestLeasesThatCannotBePlayed(t *testing.T) {
	cases := map[string]struct {
		change func(*exchange.Lease)
		reason string
	}{
		"an environment that is not known": {change: func(l *exchange.Lease) { l.Environment = "nobody" },
			reason: "environment_down"},
		"weights that are missing": {change: func(l *exchange.Lease) { l.Sampler = "tinker://run/sampler_weights/missing" },
			reason: "policy_gone"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b, s := newScriptedLearner(trainKey(0), trainKey(1)), newLearnerService(t)
			tc.change(&b.open[0])
			b.open[0].SamplingSession = 7
			s.serve(b, 1)
			s.start("worker-0", newEndpoint(), nil)
			eventually(t, "the lease is released", func() bool {
				return see(b, func() string { return b.released[trainKey(0)] }) == tc.reason
			})
			arrive(t, b, trainKey(1))
		})
	}
}

// crossing makes the worker say Hello once while a lease is on its way to it.
type crossing struct {
	Learner
	hello func()
}

func (c *crossing) Acquire(ctx context.Context, free int) ([]exchange.Lease, error) {
	leases, err := c.Learner.Acquire(ctx, free)
	if len(leases) > 0 && c.hello != nil {
		c.hello()
		c.hello = nil
	}
	return leases, err
}

// TestLeaseThatCrossesAHello says Hello after a lease was sent to the worker and before the worker begins to play it.
// A group that the Hello does not list is not played.
func TestLeaseThatCrossesAHello(t *testing.T) {
	b, s := newScriptedLearner(trainKey(0)), newLearnerService(t)
	var worker atomic.Pointer[Worker]
	c := &crossing{hello: func() {
		for worker.Load() == nil {
			time.Sleep(time.Millisecond)
		}
		(&exchangeWorker{worker: worker.Load()}).Hello()
	}}
	api := newEndpoint()
	worker.Store(s.start("worker-0", api, func(config *Config) { c.Learner, config.Learner = config.Learner, c }).worker)
	s.serve(b, 1)
	eventually(t, "the lease is released", func() bool {
		return see(b, func() string { return b.released[trainKey(0)] }) == exchange.NotPlayed
	})
	arrive(t, b, trainKey(0))
}

func TestWorkerEndsForAnUnsupportedRun(t *testing.T) {
	cases := map[string]func(*contract.Play){
		"a model without a tokenizer": func(p *contract.Play) { p.Model.Name = "nobody/nothing" },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			b, s := newScriptedLearner(), newLearnerService(t)
			change(&b.play)
			s.serve(b, 1)
			r := s.start("worker-0", newEndpoint(), nil)
			eventually(t, "a learner said what is played",
				func() bool { return see(b, func() int { return len(b.hellos) }) > 0 })
			var unplayable *ConfigError
			eventually(t, "the worker ends", func() bool { return r.ended() })
			if err := r.stop(); !errors.As(err, &unplayable) {
				t.Errorf("Run: %v, want a *ConfigError", err)
			}
		})
	}
}
