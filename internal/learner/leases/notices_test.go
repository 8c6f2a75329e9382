// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"fmt"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

func TestRejectedGroupsAreSentToWorkersThatStoreThem(t *testing.T) {
	rejected := exchange.RejectedGroup{Key: key(3), Outcome: rl.InvalidTokens, Reason: "why"}
	cases := map[string]struct {
		stored  map[rl.Key]rl.Outcome
		covered int64
		want    []exchange.RejectedGroup
	}{
		"the group is stored": {stored: map[rl.Key]rl.Outcome{key(3): rl.Usable},
			want: []exchange.RejectedGroup{rejected}},
		"its tombstone is stored":    {stored: map[rl.Key]rl.Outcome{key(3): rl.InvalidTokens}},
		"another group is stored":    {stored: map[rl.Key]rl.Outcome{key(4): rl.Usable}},
		"its slot is durable by now": {stored: map[rl.Key]rl.Outcome{key(3): rl.Usable}, covered: 4},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var n notices
			n.reject(rejected)
			n.cover(tc.covered)
			expect(t, "rejected", tc.want, n.rejectedAt(&worker{stored: tc.stored}))
		})
	}
}

func TestTheLatestEvaluationsAreRemembered(t *testing.T) {
	var n notices
	for i := range 100 {
		n.coverEvaluation(exchange.Evaluation{Digest: string(rune('a' + i))})
	}
	expect(t, "count", 64, len(n.evaluated))
	expect(t, "the latest", string(rune('a'+99)), n.evaluated[63].Digest)
}

func TestCredits(t *testing.T) {
	c := newCredits(16)
	steps := []struct {
		what  string
		after time.Duration
		do    func(c *credits, now time.Time)
		want  int
	}{
		{"full", 0, (*credits).grow, 16},
		{"cut", 0, (*credits).cut, 8},
		{"cut again at once", time.Second, (*credits).cut, 8},
		{"cut again later", 2 * time.Second, (*credits).cut, 4},
		{"grown too early", 2500 * time.Millisecond, (*credits).grow, 4},
		{"grown", 3 * time.Second, (*credits).grow, 5},
		{"cut to the least", 5 * time.Second, func(c *credits, now time.Time) {
			for i := range 10 {
				c.cut(now.Add(time.Duration(i) * cutPause))
			}
		}, 1},
	}
	for _, step := range steps {
		step.do(&c, epoch.Add(step.after))
		expect(t, step.what, step.want, c.total())
	}
	expect(t, "no concurrency leaves one request", 1, newLoadPointer(0).share(0))
	expect(t, "a share of 3 workers", 5, newLoadPointer(16).share(3))
}

// TestFewRefusalsDoNotReduceCredits adds up the refusals that several workers report: credits are cut when, within the
// period in which they are cut at most once, the refusals reach a sixteenth of the limit.
func TestFewRefusalsDoNotReduceCredits(t *testing.T) {
	l := newLoadPointer(256)
	for i, step := range []struct {
		after     time.Duration
		throttled int
		want      int
	}{
		{0, 5, 256},
		{time.Second, 10, 256},
		{2 * time.Second, 5, 256},
		{3 * time.Second, 10, 256},
		{3500 * time.Millisecond, 1, 128},
		{4 * time.Second, 7, 128},
		{5500 * time.Millisecond, 1, 64},
	} {
		l.observe(&exchange.WorkerState{Throttled: int32(step.throttled)}, epoch.Add(step.after))
		expect(t, fmt.Sprintf("credits after report %d", i), step.want, l.credits.total())
	}
}

func newLoadPointer(concurrency int) *load {
	l := newLoad(concurrency)
	return &l
}

func TestProblemsAreReportedForAWhile(t *testing.T) {
	cases := map[string]struct {
		state   *exchange.WorkerState
		problem problem.Code
		credits int
	}{
		"nothing":        {&exchange.WorkerState{QueueState: "active"}, "", 16},
		"a paused queue": {&exchange.WorkerState{QueueState: "paused_rate_limit"}, problem.PausedRateLimit, 16},
		"throttling":     {&exchange.WorkerState{Throttled: 1}, problem.Throttled, 8},
		"throttling and a paused one": {&exchange.WorkerState{Throttled: 1, QueueState: "paused_capacity"}, problem.Throttled,
			8},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLoadPointer(16)
			l.observe(tc.state, epoch)
			expect(t, "problem", tc.problem, l.currentProblem(epoch.Add(10*time.Second)))
			expect(t, "problem later", problem.Code(""), l.currentProblem(epoch.Add(11*time.Second)))
			expect(t, "credits", tc.credits, l.credits.total())
		})
	}
}
