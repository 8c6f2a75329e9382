// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"maps"
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// Problem is a problem at the endpoint.
type Problem struct {
	Code problem.Code
	// Op is the operation that failed, and Status the status of its answer. They are empty if only the code is known.
	Op     string
	Status int
	// Evidence describes the request that failed, as Event.Evidence does.
	Evidence string
}

// Problems has the problems that were observed lately. The lock of its owner guards it.
type Problems struct {
	// Lasts is the time for which a problem counts if its end is not reported: a call that was abandoned reports
	// nothing.
	Lasts time.Duration
	// After is the time for which a problem must have been observed before it counts.
	After time.Duration
	seen  map[problem.Code]observed
}

// observed is a problem that began at since and was last observed at last. The request that its evidence describes
// last failed at shown.
type observed struct {
	Problem
	since, last, shown time.Time
}

// Newest returns the problem that was observed last.
func (p *Problems) Newest(now time.Time) (Problem, bool) {
	newest, found := observed{last: now.Add(-p.Lasts)}, false
	for _, code := range slices.Sorted(maps.Keys(p.seen)) {
		o := p.seen[code]
		if o.last.After(newest.last) && now.Sub(o.since) >= p.After {
			newest, found = o, true
		}
	}
	return newest.Problem, found
}

// Add records a problem. While the request of an earlier evidence continues to fail in the same way, that evidence is
// kept, so that several operations that fail at the same time do not alternate.
func (p *Problems) Add(found Problem, now time.Time) {
	next := observed{Problem: found, since: now, last: now, shown: now}
	known, ok := p.seen[found.Code]
	if ok && now.Sub(known.last) < p.Lasts {
		next.since = known.since
	}
	same := known.Op == found.Op && known.Status == found.Status
	if ok && known.Evidence != "" && (same || found.Evidence == "" || now.Sub(known.shown) < p.Lasts &&
		known.Op != found.Op) {
		next.Problem = known.Problem
		if !same {
			next.shown = known.shown
		}
	}
	if p.seen == nil {
		p.seen = map[problem.Code]observed{}
	}
	p.seen[found.Code] = next
}

// Remove records that a problem is over.
func (p *Problems) Remove(code problem.Code) { delete(p.seen, code) }

// Observe records the reason of a call's wait, or that the call no longer waits.
func (p *Problems) Observe(event Event, now time.Time) {
	code := codeOf(event)
	if event.Over {
		p.Remove(code)
		return
	}
	p.Add(Problem{Code: code, Op: event.Op, Status: event.Status, Evidence: event.Evidence()}, now)
}
