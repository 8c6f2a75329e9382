// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

func TestPressure(t *testing.T) {
	throttled := client.Event{Category: tinker.CategoryThrottled}
	paused := client.Event{Category: tinker.CategoryPaused, QueueState: tinker.QueuePausedCapacity}
	over := func(e client.Event) client.Event {
		e.Over = true
		return e
	}
	cases := map[string]struct {
		events    []client.Event
		throttled int
		queue     string
	}{
		"nothing was said":           {},
		"answers 429 are counted":    {events: []client.Event{throttled, throttled, over(throttled)}, throttled: 2},
		"a paused queue is reported": {events: []client.Event{paused}, queue: "paused_capacity"},
		"until it continues":         {events: []client.Event{paused, over(paused)}, queue: "active"},
		"other errors do not count":  {events: []client.Event{{Category: tinker.CategoryServer}}},
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
