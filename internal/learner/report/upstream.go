// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"maps"
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// problem is a problem at the endpoint that was observed lately.
type problem struct {
	at time.Time
	// evidence describes a request that failed: an operation that got a status, last at shown.
	op       string
	status   int
	evidence string
	shown    time.Time
}

// problems are those at the endpoint by kind, as contract.HeartbeatReply.Upstream spells it.
type problems map[string]problem

// problemLasts is how long a problem counts that was not reported to be over: a call that was abandoned reports
// nothing. Retries come every 30 s at the latest.
const problemLasts = 90 * time.Second

// newest returns the kind and the evidence of the newest problem.
func (p problems) newest(now time.Time) (kind, evidence string) {
	newest := now.Add(-problemLasts)
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if p[name].at.After(newest) {
			newest, kind, evidence = p[name].at, name, p[name].evidence
		}
	}
	return kind, evidence
}

// add records a problem. While the request of an earlier evidence continues to fail in the same way, that evidence is
// kept, so that several operations that fail at the same time do not alternate.
func (p problems) add(kind string, seen problem) {
	seen.shown = seen.at
	known, ok := p[kind]
	same := known.op == seen.op && known.status == seen.status
	if ok && known.evidence != "" && (same || seen.evidence == "" || seen.at.Sub(known.shown) < problemLasts && known.op != seen.op) {
		if same {
			known.shown = seen.at
		}
		known.at = seen.at
		seen = known
	}
	p[kind] = seen
}

// Observe records the problems that calls to the endpoint wait for.
func (s *Status) Observe(event client.Event) {
	kind := upstreamKind(event)
	s.mu.Lock()
	defer s.mu.Unlock()
	if event.Over {
		delete(s.problems, kind)
		s.progressed = s.now()
		return
	}
	s.problems.add(kind, problem{at: s.now(), op: event.Op, status: event.Status, evidence: event.Evidence()})
}

// AddProblem records a problem that others observed at the endpoint, with its evidence if there is any.
func (s *Status) AddProblem(kind, evidence string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems.add(kind, problem{at: s.now(), evidence: evidence})
}

// RemoveProblem records that a problem is over.
func (s *Status) RemoveProblem(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.problems, kind)
}

func upstreamKind(event client.Event) string {
	switch event.Category {
	case tinker.CategoryThrottled:
		return "throttled"
	case tinker.CategoryPayment:
		return "payment"
	case tinker.CategoryPaused:
		return string(event.QueueState)
	case tinker.CategoryTooLarge:
		return "too_large"
	case tinker.CategoryUnreachable:
		return "unreachable"
	default:
		return "server_error"
	}
}
