// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

func TestWorkersAreAlive(t *testing.T) {
	cases := map[string]struct {
		change func(ws *workers)
		after  time.Duration
		want   []string
	}{
		"just seen":                     {func(*workers) {}, 0, []string{"w0"}},
		"silent for as long as allowed": {func(*workers) {}, 30 * time.Second, []string{"w0"}},
		"silent for longer":             {func(*workers) {}, 31 * time.Second, []string{}},
		"seen again": {func(ws *workers) { ws.observe("w0", epoch.Add(20*time.Second)) },
			31 * time.Second, []string{"w0"}},
		"only looked up": {func(ws *workers) { ws.get("w0", epoch.Add(20*time.Second)) }, 31 * time.Second,
			[]string{}},
		"disconnected a moment ago": {func(ws *workers) { ws.disconnect("w0", epoch) }, redial, []string{"w0"}},
		"disconnected for too long": {func(ws *workers) { ws.disconnect("w0", epoch) }, redial + 1, []string{}},
		"renewed on another connection": {func(ws *workers) {
			ws.disconnect("w0", epoch)
			ws.byName["w0"].renew(exchange.Renewal{})
		}, redial + 1, []string{"w0"}},
		"a worker that nobody knows left": {func(ws *workers) { ws.disconnect("w1", epoch) }, 0, []string{"w0"}},
		"two workers, by name":            {func(ws *workers) { ws.observe("v", epoch) }, 0, []string{"v", "w0"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ws := newWorkers(30 * time.Second)
			ws.observe("w0", epoch)
			tc.change(&ws)
			expect(t, "alive", tc.want, ws.alive(epoch.Add(tc.after)))
		})
	}
}

func TestExpectedWorkersArrive(t *testing.T) {
	ws := newWorkers(time.Minute)
	expect(t, "without expectations", false, ws.arrived("w0"))
	ws.expect([]string{"w0", "w1"})
	for _, step := range []struct {
		name string
		want bool
	}{{"w0", false}, {"w0", false}, {"w2", false}, {"w1", true}, {"w1", false}} {
		expect(t, step.name+" completes the workers", step.want, ws.arrived(step.name))
	}
}

func TestStoredGroupsOfLiveWorkersAreKnown(t *testing.T) {
	ws := newWorkers(time.Minute)
	w := ws.observe("w0", epoch)
	w.hello(exchange.HelloRequest{Stored: []exchange.StoredGroup{{Key: key(1)}, {Key: key(2)}}})
	expect(t, "stored", true, ws.isStored(key(1), epoch))
	expect(t, "not stored", false, ws.isStored(key(3), epoch))
	expect(t, "stored by a lost worker", false, ws.isStored(key(1), epoch.Add(time.Hour)))
	ws.cover(2)
	expect(t, "covered", false, ws.isStored(key(1), epoch))
	expect(t, "not covered", true, ws.isStored(key(2), epoch))
}

func TestGroupThatIsNotSubmittedIsRequestedForAMinute(t *testing.T) {
	ws := newWorkers(time.Hour)
	w := ws.observe("w0", epoch)
	w.hello(exchange.HelloRequest{Stored: []exchange.StoredGroup{{Key: key(1), Outcome: rl.Constant}}})
	expect(t, "a group that it does not store", false, w.request(key(2), epoch))
	expect(t, "at first", true, w.request(key(1), epoch))
	expect(t, "after a minute", true, w.request(key(1), epoch.Add(time.Minute)))
	expect(t, "later", false, w.request(key(1), epoch.Add(time.Minute+1)))
	expect(t, "stored", false, ws.isStored(key(1), epoch))
}

// TestRestartedWorkerLosesItsLeases says Hello for a worker that holds leases. A process that was restarted in its pod
// plays nothing.
func TestRestartedWorkerLosesItsLeases(t *testing.T) {
	cases := map[string]struct {
		after time.Duration
		hello exchange.HelloRequest
		want  []int64
	}{
		"it plays nothing": {2 * time.Second, exchange.HelloRequest{}, []int64{0, 1}},
		"it plays one of them": {2 * time.Second, exchange.HelloRequest{Playing: []rl.Key{key(0)}},
			[]int64{1}},
		"it has stored one of them": {2 * time.Second,
			exchange.HelloRequest{Stored: []exchange.StoredGroup{{Key: key(1)}}}, []int64{0}},
		"its leases may still be on their way": {helloPatience / 2, exchange.HelloRequest{}, []int64{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, c := open(t, 0)
			f.Demand("train", leases(0, 1))
			hello(t, f, "w0", exchange.HelloRequest{})
			expect(t, "leased at first", []int64{0, 1}, slots(f, "w0", 64))
			c.now = c.now.Add(tc.after)
			hello(t, f, "w0", tc.hello)
			hello(t, f, "w1", exchange.HelloRequest{})
			expect(t, "leased to another", tc.want, slots(f, "w1", 64))
		})
	}
}

func TestSilentWorkersAreForgotten(t *testing.T) {
	f, c := open(t, 0)
	hello(t, f, "w0", exchange.HelloRequest{Stored: []exchange.StoredGroup{{Key: key(1)}}})
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{time.Minute, 2}, {10 * 30 * time.Second, 1}} {
		c.now = c.now.Add(step.after)
		hello(t, f, "w1", exchange.HelloRequest{})
		f.Tick()
		expect(t, "known workers", step.want, len(f.workers.byName))
	}
	hello(t, f, "w0", exchange.HelloRequest{Stored: []exchange.StoredGroup{{Key: key(1)}}})
	expect(t, "stored by the one that came back", true, f.workers.isStored(key(1), c.now))
}
