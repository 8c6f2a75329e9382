// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// TestLearnerThatWasStopped stops the learner's process for a minute while two workers play and store groups. Whatever
// the learner handles first after that, it leases none of these groups to the other worker.
func TestLearnerThatWasStopped(t *testing.T) {
	const barrier = 10 * time.Second
	for name, first := range map[string]func(t *testing.T, f *fixture){
		"a tick": func(_ *testing.T, f *fixture) { f.Tick() },
		"leases": func(t *testing.T, f *fixture) {
			expect(t, "leased to a at once", []int64{}, slots(f, "a", 64))
		},
		"a renewal": func(_ *testing.T, f *fixture) {
			f.Renew("a", exchange.Renewal{Progress: []exchange.Progress{{Key: key(0)}}})
		},
		"a group":             func(_ *testing.T, f *fixture) { submit(f, "a", group(0, 4)) },
		"a broken connection": func(_ *testing.T, f *fixture) { f.Disconnected("b") },
		"Hello": func(t *testing.T, f *fixture) {
			hello(t, f, "a", exchange.HelloRequest{Playing: []rl.Key{key(0)}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, c := open(t, barrier)
			c.now = c.now.Add(barrier + time.Second)
			f.Demand("train", leases(0, 1, 2, 3))
			hello(t, f, "a", exchange.HelloRequest{Playing: []rl.Key{key(0)}})
			stored := exchange.HelloRequest{
				Playing: []rl.Key{key(1)}, Stored: []exchange.StoredGroup{{Key: key(2)}},
			}
			hello(t, f, "b", stored)
			f.Tick()
			c.now = c.now.Add(time.Minute)
			first(t, f)
			f.Tick()
			expect(t, "leased to a while b has not been heard of", []int64{}, slots(f, "a", 64))
			c.now = c.now.Add(redial - time.Second)
			f.Tick()
			hello(t, f, "a", exchange.HelloRequest{})
			reply := hello(t, f, "b", stored)
			expect(t, "b keeps", []exchange.Lease{f.demands.entries[key(1)].lease}, reply.Keep)
			expect(t, "revoked at b", 0, len(f.Directive("b").Revoked))
			c.now = c.now.Add(barrier)
			f.Tick()
			for _, slot := range slots(f, "a", 64) {
				if slot == 1 || slot == 2 {
					t.Errorf("a is leased slot %d, which b plays or stores", slot)
				}
			}
			silence(f, c, time.Minute)
			hello(t, f, "a", exchange.HelloRequest{Playing: []rl.Key{key(0), key(3)}})
			expect(t, "leased to a once b is silent", []int64{1, 2}, slots(f, "a", 64))
		})
	}
}

// TestWorkerThatIsSilentWhileTheLearnerRuns checks that workers get no additional time if the ticks are far apart, but
// not further than a worker may be silent.
func TestWorkerThatIsSilentWhileTheLearnerRuns(t *testing.T) {
	f, c := open(t, 0)
	f.Demand("train", leases(0))
	hello(t, f, "a", exchange.HelloRequest{Playing: []rl.Key{key(0)}})
	for range 2 {
		f.Tick()
		c.now = c.now.Add(f.config.Silence)
	}
	f.Tick()
	hello(t, f, "b", exchange.HelloRequest{})
	expect(t, "leased to b", []int64{0}, slots(f, "b", 64))
}
