// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

func TestStatus(t *testing.T) {
	now := time.Unix(0, 0)
	s := NewStatus("uid", 3, func() time.Time { return now })
	s.Update(func(p *contract.Progress) { p.Step = 4 })
	now = now.Add(5 * time.Second)
	got := s.Reply("sampling: 1 of 2 groups")
	want := contract.HeartbeatReply{
		RunUID: "uid", Attempt: 3, Sequence: 1, SecondsSinceProgress: 5, Waiting: "sampling: 1 of 2 groups",
		Progress: contract.Progress{Phase: contract.PhaseOpening, Step: 4},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
	s.Fail(Evaluation, "the weight store is full")
	if got := s.Reply("sampling: 1 of 2 groups").Waiting; got != "evaluation: the weight store is full" {
		t.Errorf("waiting for %q, want the evaluation", got)
	}
	s.Observe(client.Event{Category: tinker.CategoryThrottled})
	check := func(when string, want problem.Code) {
		t.Helper()
		if got, _ := s.Reply("").Problem(); got.Code != want {
			t.Errorf("%s: problem is %q, want %q", when, got.Code, want)
		}
	}
	check("a rate limit", problem.Throttled)
	now = now.Add(time.Second)
	s.Observe(client.Event{Category: tinker.CategoryPaused, QueueState: tinker.QueuePausedCapacity})
	check("the newest problem", problem.PausedCapacity)
	s.Observe(client.Event{Category: tinker.CategoryPaused, QueueState: tinker.QueuePausedCapacity, Over: true})
	check("what is not over", problem.Throttled)
	now = now.Add(2 * problemLasts)
	check("long after the problem", "")
}
