// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"maps"
	"slices"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

const (
	// ProblemServerError is the kind of a problem that has no other: the server answers with an error of its own.
	ProblemServerError = "server_error"
	// ProblemRefused is the kind of requests that the server refuses as invalid.
	ProblemRefused = "refused"
)

// Problem is a problem at the endpoint.
type Problem struct {
	// Kind is that of contract.HeartbeatReply.Upstream.
	Kind string
	// Op is the operation that failed, and Status what it was answered with. They are empty where only the kind is known.
	Op     string
	Status int
	// Evidence describes the request that failed, as client.Event does.
	Evidence string
}

// Problems are those that were observed lately. Its owner's lock guards it.
type Problems struct {
	// Lasts is how long a problem counts that was not reported to be over: a call that was abandoned reports nothing.
	Lasts time.Duration
	// After is how long a problem must have been observed before it counts.
	After time.Duration
	seen  map[string]observed
}

// observed is a problem that began at since and was observed last at last. Its evidence is of a request that failed
// last at shown.
type observed struct {
	Problem
	since, last, shown time.Time
}

// Newest returns the problem that was observed last.
func (p *Problems) Newest(now time.Time) (Problem, bool) {
	newest, found := observed{last: now.Add(-p.Lasts)}, false
	for _, kind := range slices.Sorted(maps.Keys(p.seen)) {
		o := p.seen[kind]
		if o.last.After(newest.last) && now.Sub(o.since) >= p.After {
			newest, found = o, true
		}
	}
	return newest.Problem, found
}

// Add records a problem. While the request of an earlier evidence continues to fail in the same way, that evidence is
// kept, so that several operations that fail at the same time do not alternate.
func (p *Problems) Add(problem Problem, now time.Time) {
	next := observed{Problem: problem, since: now, last: now, shown: now}
	known, ok := p.seen[problem.Kind]
	if ok && now.Sub(known.last) < p.Lasts {
		next.since = known.since
	}
	same := known.Op == problem.Op && known.Status == problem.Status
	if ok && known.Evidence != "" && (same || problem.Evidence == "" || now.Sub(known.shown) < p.Lasts &&
		known.Op != problem.Op) {
		next.Problem = known.Problem
		if !same {
			next.shown = known.shown
		}
	}
	if p.seen == nil {
		p.seen = map[string]observed{}
	}
	p.seen[problem.Kind] = next
}

// Remove records that a problem is over.
func (p *Problems) Remove(kind string) { delete(p.seen, kind) }

// Observe records what a call to the endpoint waits for, or that it waits no more.
func (p *Problems) Observe(event Event, now time.Time) {
	kind := kindOf(event)
	if event.Over {
		p.Remove(kind)
		return
	}
	p.Add(Problem{Kind: kind, Op: event.Op, Status: event.Status, Evidence: event.Evidence()}, now)
}

func kindOf(event Event) string {
	switch event.Category {
	case tinker.CategoryThrottled, tinker.CategoryPayment, tinker.CategoryTooLarge, tinker.CategoryUnreachable:
		return string(event.Category)
	case tinker.CategoryPaused:
		return string(event.QueueState)
	default:
		return ProblemServerError
	}
}
