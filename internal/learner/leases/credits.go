// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import "time"

// credits bound how many sample requests the run has under way. Rate limits belong to the API key, so one
// number serves all workers: it is halved when the endpoint asks to slow down, at most once in a while
// since answers to what was sent before still arrive, and grows by a fixed share each second.
type credits struct {
	limit, most float64
	cut, grown  time.Time
}

const (
	cutPause   = 2 * time.Second
	growPause  = time.Second
	growShare  = 1.0 / 32
	fewest     = 1.0
	cutDivisor = 2
)

func newCredits(concurrency int) credits {
	most := max(float64(concurrency), fewest)
	return credits{limit: most, most: most}
}

// slow halves the limit.
func (c *credits) slow(now time.Time) {
	if now.Sub(c.cut) < cutPause {
		return
	}
	c.limit = max(fewest, c.limit/cutDivisor)
	c.cut, c.grown = now, now
}

// grow raises the limit by what the time that passed allows.
func (c *credits) grow(now time.Time) {
	if c.limit >= c.most || now.Sub(c.grown) < growPause {
		return
	}
	c.limit = min(c.most, c.limit+max(1, c.most*growShare))
	c.grown = now
}

// total is the limit in whole requests.
func (c *credits) total() int { return int(c.limit) }
