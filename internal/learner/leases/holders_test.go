// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"errors"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// beginModel begins a model, as a source does before it demands groups of that model.
func beginModel(f *fixture) { f.BeginModel() }

// TestCheckNotSampled leases slot 0 to w0, lets w0 go on in several ways, and checks whether CheckNotSampled still
// reports that the slot may have been sampled.
func TestCheckNotSampled(t *testing.T) {
	release := func(reason string) func(f *fixture, c *clock) {
		return func(f *fixture, _ *clock) { f.Release("w0", []rl.Key{key(0)}, reason) }
	}
	lose := func(f *fixture, c *clock) {
		c.now = c.now.Add(time.Minute)
		hello(t, f, "w1", exchange.HelloRequest{})
		f.Tick()
	}
	cases := map[string]struct {
		then    []func(f *fixture, c *clock)
		sampled bool
	}{
		"it submits": {then: []func(f *fixture,
			c *clock){func(f *fixture, _ *clock) { submit(f, "w0", group(0, 4)) }}},
		"it could not begin": {then: []func(f *fixture, c *clock){release(exchange.EnvironmentDown)}},
		"it is lost":         {then: []func(f *fixture, c *clock){lose}, sampled: true},
		"it releases what it has begun": {then: []func(f *fixture, c *clock){release(exchange.PolicyMissing)},
			sampled: true},
		"it ends": {then: []func(f *fixture, c *clock){release(exchange.Drained)}, sampled: true},
		"it does not know of all its samples": {then: []func(f *fixture, c *clock){release(exchange.SamplesUnanswered),
			func(f *fixture, _ *clock) { submit(f, "w0", group(0, 4)) }}, sampled: true},
		"it is lost, and submits later": {then: []func(f *fixture, c *clock){lose, func(f *fixture, _ *clock) {
			f.grant("w1", 64)
			submit(f, "w1", group(0, 4))
			submit(f, "w0", group(0, 4))
		}}},
		"it stays connected": {then: []func(f *fixture, c *clock){func(f *fixture, _ *clock) {
			hello(t, f, "w0", exchange.HelloRequest{Playing: []rl.Key{key(0)}})
			submit(f, "w0", group(0, 4))
		}}},
		"it is another process, which is leased the slot again": {then: []func(f *fixture,
			c *clock){func(f *fixture, c *clock) {
			c.now = c.now.Add(2 * helloPatience)
			hello(t, f, "w0", exchange.HelloRequest{})
			f.grant("w0", 64)
			submit(f, "w0", group(0, 4))
		}}, sampled: true},
		"it is another process, which stores the group": {then: []func(f *fixture, c *clock){func(f *fixture, _ *clock) {
			hello(t, f, "w0", exchange.HelloRequest{Stored: []exchange.StoredGroup{{Key: key(0)}}})
			submit(f, "w0", group(0, 4))
		}}, sampled: true},
		"it has stopped, and is leased the slot again": {then: []func(f *fixture, c *clock){func(f *fixture, c *clock) {
			c.now = c.now.Add(2 * renewPatience)
			f.Renew("w0", exchange.Renewal{})
			f.grant("w0", 64)
			submit(f, "w0", group(0, 4))
		}}, sampled: true},
		"the model is replaced": {then: []func(f *fixture, c *clock){lose, func(f *fixture, _ *clock) { beginModel(f) }}},
		"the model is replaced, and it continues with the lease of the next": {then: []func(f *fixture,
			c *clock){func(f *fixture, _ *clock) {
			beginModel(f)
			hello(t, f, "w0", exchange.HelloRequest{Playing: []rl.Key{key(0)}})
		}}, sampled: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, c := open(t, 0)
			source := &BatchSource{table: f.Table}
			f.Demand("train", leases(0))
			hello(t, f, "w0", exchange.HelloRequest{})
			expect(t, "leased", []int64{0}, slots(f, "w0", 64))
			if err := source.CheckNotSampled(); !errors.Is(err, ErrSampled) {
				t.Errorf("while it plays: %v, want %v", err, ErrSampled)
			}
			for _, then := range tc.then {
				then(f, c)
			}
			if err := source.CheckNotSampled(); errors.Is(err, ErrSampled) != tc.sampled {
				t.Errorf("in the end: %v, want that it may be sampled: %v", err, tc.sampled)
			}
		})
	}
}
