// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
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
		RunUID: "uid", Attempt: 3, Sequence: 1, SecondsSinceProgress: 5, BlockedOn: "sampling: 1 of 2 groups",
		Progress: contract.Progress{Phase: contract.PhaseOpening, Step: 4},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
	s.Block(contract.BlockedOnArtifacts, "disk is full")
	if got := s.Reply("").BlockedOn; got != "artifacts: disk is full" {
		t.Errorf("blocked on %q, want the store", got)
	}
	s.Block(contract.BlockedOnArtifacts, "")
	s.Block(BlockedOnEvaluation, "the weight store is full")
	if got := s.Reply("sampling: 1 of 2 groups").BlockedOn; got != "evaluation: the weight store is full" {
		t.Errorf("blocked on %q, want the evaluation", got)
	}
	s.Observe(client.Event{Category: tinker.CategoryThrottled})
	if got := s.Reply(""); got.Upstream != "throttled" || got.BlockedOn != "endpoint: throttled" {
		t.Errorf("blocked on %q, upstream %q, want throttled", got.BlockedOn, got.Upstream)
	}
	now = now.Add(time.Second)
	s.Observe(client.Event{Category: tinker.CategoryPaused, QueueState: tinker.QueuePausedCapacity})
	if got := s.Reply("").Upstream; got != "paused_capacity" {
		t.Errorf("upstream is %q, want the newest problem", got)
	}
	s.Observe(client.Event{Category: tinker.CategoryPaused, QueueState: tinker.QueuePausedCapacity, Over: true})
	if got := s.Reply("").Upstream; got != "throttled" {
		t.Errorf("upstream is %q, want what is not over", got)
	}
	now = now.Add(2 * problemLasts)
	if got := s.Reply("").Upstream; got != "" {
		t.Errorf("upstream is %q long after the problem", got)
	}
}
