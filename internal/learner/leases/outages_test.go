// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// openWithEnvironments returns an open table of the environments "a", which may be skipped, and "b".
func openWithEnvironments(t *testing.T) (*fixture, *clock) {
	t.Helper()
	c := &clock{now: time.Unix(1000, 0)}
	f := newFixture(Config{
		Concurrency: 64, Silence: 30 * time.Second, Logger: slog.New(slog.DiscardHandler),
		Now:          func() time.Time { return c.now },
		Environments: map[string]bool{"a": true, "b": false}, SkipAfter: 30 * time.Second,
	})
	f.Open()
	var list []exchange.Lease
	for slot := range int64(4) {
		l := lease(slot)
		l.Environment = map[int64]string{0: "a", 1: "b"}[slot%2]
		list = append(list, l)
	}
	f.Demand("train", list)
	return f, c
}

// slots returns the slots of the leases that a worker is granted now.
func (f *fixture) slots(worker string) []int64 {
	var slots []int64
	for _, l := range f.grant(worker, 64) {
		slots = append(slots, l.Key.Slot)
	}
	return slots
}

func down(names ...string) exchange.Renewal {
	unavailable := map[string]string{}
	for _, name := range names {
		unavailable[name] = "connection refused"
	}
	return exchange.Renewal{State: &exchange.WorkerState{Unavailable: unavailable}}
}

func playing(r exchange.Renewal, slots ...int64) exchange.Renewal {
	for _, slot := range slots {
		r.Progress = append(r.Progress, exchange.Progress{Key: key(slot)})
	}
	return r
}

func TestLeasesMoveToWorkersThatCanPlayThem(t *testing.T) {
	f, _ := openWithEnvironments(t)
	hello(t, f, "w0", exchange.HelloRequest{})
	if diff := cmp.Diff([]int64{0, 1, 2, 3}, f.slots("w0")); diff != "" {
		t.Fatalf("leases of w0 (-want +got):\n%s", diff)
	}
	hello(t, f, "w1", exchange.HelloRequest{})
	directive := f.Renew("w0", playing(down("a"), 0, 1, 2, 3))
	if diff := cmp.Diff([]rl.Key{key(0), key(2)}, directive.Revoked); diff != "" {
		t.Errorf("revoked (-want +got):\n%s", diff)
	}
	if got := f.slots("w0"); got != nil {
		t.Errorf("w0 is leased slots %v of an environment that it cannot play", got)
	}
	if diff := cmp.Diff([]int64{0, 2}, f.slots("w1")); diff != "" {
		t.Errorf("leases of w1 (-want +got):\n%s", diff)
	}
	if got := f.Unavailable(); got != nil {
		t.Errorf("Unavailable = %v while w1 can play everything", got)
	}
}

func TestOutageOfAllWorkers(t *testing.T) {
	f, c := openWithEnvironments(t)
	hello(t, f, "w0", exchange.HelloRequest{})
	f.slots("w0")
	directive := f.Renew("w0", playing(down("a", "b"), 0, 1, 2, 3))
	if len(directive.Revoked) > 0 {
		t.Errorf("revoked %v, although no other worker could play them", directive.Revoked)
	}
	c.now = c.now.Add(time.Hour)
	if directive = f.Renew("w0", playing(down("a", "b"), 0, 1, 2, 3)); len(directive.Skipped) > 0 {
		t.Errorf("skipped %v, although the run has no other environment", directive.Skipped)
	}
	if directive = f.Renew("w0", playing(down("a"), 0, 1, 2, 3)); !cmp.Equal(directive.Skipped, []string{"a"}) {
		t.Errorf("skipped %v, want a: b is available", directive.Skipped)
	}
	want := []contract.UnavailableEnvironment{{Name: "a", Problem: "connection refused", Skipped: true}}
	if diff := cmp.Diff(want, f.Unavailable()); diff != "" {
		t.Errorf("Unavailable (-want +got):\n%s", diff)
	}
	if directive = f.Renew("w0", playing(down(), 0, 1, 2, 3)); len(directive.Skipped) > 0 || f.Unavailable() != nil {
		t.Errorf("skipped are %v and unavailable %v after a has become available, want none",
			directive.Skipped, f.Unavailable())
	}
}

// TestCodeOfAnOutage checks that the code that a worker reports for an unavailable environment is passed on.
func TestCodeOfAnOutage(t *testing.T) {
	f, _ := openWithEnvironments(t)
	hello(t, f, "w0", exchange.HelloRequest{})
	f.slots("w0")
	report := down("a", "b")
	report.State.UnavailableCodes = map[string]string{"b": string(problem.ServersAuthorityUnknown)}
	f.Renew("w0", report)
	want := []contract.UnavailableEnvironment{{Name: "a", Problem: "connection refused"},
		{Name: "b", Problem: "connection refused", Code: problem.ServersAuthorityUnknown}}
	if diff := cmp.Diff(want, f.Unavailable()); diff != "" {
		t.Errorf("Unavailable (-want +got):\n%s", diff)
	}
}

func TestSkippingBeginsAfterAWhile(t *testing.T) {
	f, c := openWithEnvironments(t)
	hello(t, f, "w0", exchange.HelloRequest{})
	for _, tc := range []struct {
		after         time.Duration
		playing, want []int64
	}{{0, nil, []int64{1, 3}}, {29 * time.Second, []int64{1, 3}, nil}, {time.Second, []int64{1, 3}, []int64{0, 2}}} {
		c.now = c.now.Add(tc.after)
		f.Renew("w0", playing(down("a"), tc.playing...))
		if diff := cmp.Diff(tc.want, f.slots("w0")); diff != "" {
			t.Errorf("leases %v later (-want +got):\n%s", tc.after, diff)
		}
	}
}
