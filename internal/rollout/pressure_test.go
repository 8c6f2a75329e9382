// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/problem"
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

// TestProblemOfSamples checks that a request is reported once it has failed for a while, and not while a retry is
// likely to succeed.
func TestProblemOfSamples(t *testing.T) {
	failing := client.Event{
		Op: "asample", Category: tinker.CategoryServer, Method: http.MethodPost, Path: "/api/v1/asample", Status: 500,
		Reason: "no adapter\nsecond line",
	}
	over := failing
	over.Over = true
	failed := &client.Error{Op: "asample", Category: tinker.CategoryServer, Method: http.MethodPost,
		Path: "/api/v1/retrieve_future", Status: 200, Message: "out of memory"}
	want := client.Problem{Code: problem.EndpointFailing, Op: "asample", Status: 500,
		Evidence: "POST /api/v1/asample was answered with 500: no adapter"}
	synctest.Test(t, func(t *testing.T) {
		var p Pressure
		check := func(when string, want client.Problem) {
			t.Helper()
			if got := p.problem(); got != want {
				t.Errorf("%s: the problem is %+v, want %+v", when, got, want)
			}
		}
		check("at first", client.Problem{})
		p.Observe(failing)
		check("after one failure", client.Problem{})
		time.Sleep(problemAfter)
		p.Observe(failing)
		check("after some time", want)
		p.Observe(over)
		check("when it is over", client.Problem{})
		p.fail(problem.EndpointFailing, failed)
		time.Sleep(problemAfter)
		check("after a failed result", client.Problem{Code: problem.EndpointFailing, Op: "asample",
			Evidence: "POST /api/v1/retrieve_future was answered with 200: out of memory"})
		p.succeed(false)
		check("after another sample", client.Problem{Code: problem.EndpointFailing, Op: "asample",
			Evidence: "POST /api/v1/retrieve_future was answered with 200: out of memory"})
		p.succeed(true)
		check("after the sample", client.Problem{})
		p.fail(problem.SamplingRefused, failed)
		time.Sleep(problemAfter)
		check("after a refusal", client.Problem{Code: problem.SamplingRefused, Op: "asample",
			Evidence: "POST /api/v1/retrieve_future was answered with 200: out of memory"})
		p.succeed(false)
		check("after any sample", client.Problem{})
		p.Observe(failing)
		time.Sleep(problemLasts)
		check("long after a request that was abandoned", client.Problem{})
	})
}
