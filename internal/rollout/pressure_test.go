// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

func TestPressure(t *testing.T) {
	throttled := tinker.Event{Category: tinker.CategoryThrottled}
	paused := tinker.Event{Category: tinker.CategoryPaused, QueueState: tinker.QueuePausedCapacity}
	over := func(e tinker.Event) tinker.Event {
		e.Over = true
		return e
	}
	cases := map[string]struct {
		events    []tinker.Event
		throttled int
		queue     string
	}{
		"nothing was said":           {},
		"answers 429 are counted":    {events: []tinker.Event{throttled, throttled, over(throttled)}, throttled: 2},
		"a paused queue is told of":  {events: []tinker.Event{paused}, queue: "paused_capacity"},
		"until it goes on":           {events: []tinker.Event{paused, over(paused)}, queue: "active"},
		"other trouble is no matter": {events: []tinker.Event{{Category: tinker.CategoryServer}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var p Pressure
			for _, e := range tc.events {
				p.Observe(e)
			}
			if n, queue := p.take(); n != tc.throttled || queue != tc.queue {
				t.Errorf("take = %d, %q, want %d, %q", n, queue, tc.throttled, tc.queue)
			}
			if n, _ := p.take(); n != 0 {
				t.Errorf("%d are counted twice", n)
			}
		})
	}
}
