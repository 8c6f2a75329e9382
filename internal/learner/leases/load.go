// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"time"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// load has the workers' reports of the endpoint's load, and the number of requests that they may send because of it.
// Its owner's lock guards it.
type load struct {
	credits credits
	// problem is the problem that workers reported last, at the time reported.
	problem  problem.Code
	reported time.Time
}

func newLoad(concurrency int) load { return load{credits: newCredits(concurrency)} }

// observe takes over a worker's report. The endpoint processes a paused queue by itself, and fewer requests do not
// help.
func (l *load) observe(state *exchange.WorkerState, now time.Time) {
	switch tinker.QueueState(state.GetQueueState()) {
	case tinker.QueuePausedCapacity:
		l.problem, l.reported = problem.PausedCapacity, now
	case tinker.QueuePausedRateLimit:
		l.problem, l.reported = problem.PausedRateLimit, now
	}
	if throttled := int(state.GetThrottled()); throttled > 0 {
		l.problem, l.reported = problem.Throttled, now
		l.credits.refuse(throttled, now)
	}
}

// currentProblem returns the problem that was reported lately; empty if there is none.
func (l *load) currentProblem(now time.Time) problem.Code {
	const lately = 10 * time.Second
	if now.Sub(l.reported) > lately {
		return ""
	}
	return l.problem
}

// share returns the number of requests that each worker may have in flight.
func (l *load) share(workers int) int { return l.credits.total() / max(1, workers) }

// credits bounds how many sample requests the run has in flight. Rate limits belong to the API key, so one number
// serves all workers: it is halved when the endpoint asks to slow down, but at most once in a while, since replies to
// earlier requests still arrive, and grows by a fixed share each second. A few refusals among many requests take no
// credits, because an endpoint may refuse some at any load; those requests are repeated.
type credits struct {
	limit, most       float64
	lastCut, lastRise time.Time
	// refused counts the refusals since counted.
	refused float64
	counted time.Time
}

const (
	cutPause   = 2 * time.Second
	growPause  = time.Second
	growShare  = 1.0 / 32
	fewest     = 1.0
	cutDivisor = 2
	// cutShare is the share of the limit that has to be refused within cutPause.
	cutShare = 1.0 / 16
)

func newCredits(concurrency int) credits {
	most := max(float64(concurrency), fewest)
	return credits{limit: most, most: most}
}

// refuse counts refusals, and cuts the limit once they reach cutShare of it.
func (c *credits) refuse(requests int, now time.Time) {
	if now.Sub(c.counted) >= cutPause {
		c.refused, c.counted = 0, now
	}
	c.refused += float64(requests)
	if c.refused >= c.limit*cutShare {
		c.cut(now)
	}
}

// cut halves the limit.
func (c *credits) cut(now time.Time) {
	if now.Sub(c.lastCut) < cutPause {
		return
	}
	c.limit = max(fewest, c.limit/cutDivisor)
	c.lastCut, c.lastRise = now, now
}

// grow raises the limit by growShare of its maximum, unless it was changed within the last growPause.
func (c *credits) grow(now time.Time) {
	if c.limit >= c.most || now.Sub(c.lastRise) < growPause {
		return
	}
	c.limit = min(c.most, c.limit+max(1, c.most*growShare))
	c.lastRise = now
}

// total is the limit in whole requests.
func (c *credits) total() int { return int(c.limit) }
