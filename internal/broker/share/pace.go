// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"math"
	"time"
)

const (
	// decrease and leastDecrease decide the rate after a second with answers of 429: decrease times the accepted rate,
	// but at least leastDecrease times the previous rate.
	decrease      = 0.95
	leastDecrease = 0.5
	// increase is by how much of the limit the rate rises each second, and growth by how much of itself without a limit.
	increase = 0.02
	growth   = 0.05
	// lifted is the multiple of the highest accepted rate above which a rate without a limit is unlimited again.
	lifted = 4
	// leastRate is the lowest rate.
	leastRate = 0.5
)

// pace is how many requests a second are forwarded: the limit, or less after answers of 429.
type pace struct {
	// limit is the configured rate, and rate the rate in force. Both may be infinite.
	limit, rate float64
	// best is the highest rate that the server accepted since its first 429.
	best float64
	// began is when the present second began. accepted and refused count the server's answers in it.
	began             time.Time
	accepted, refused int
}

// setLimit sets the limit; 0 is none.
func (p *pace) setLimit(perSecond float64) {
	if perSecond <= 0 {
		perSecond = math.Inf(1)
	}
	p.limit, p.rate, p.best = perSecond, perSecond, 0
}

// answer notes an answer of the server.
func (p *pace) answer(refused bool) {
	if refused {
		p.refused++
		return
	}
	p.accepted++
}

// pass adjusts the rate if a second has passed.
func (p *pace) pass(now time.Time) {
	if p.began.IsZero() {
		p.began = now
	}
	took := now.Sub(p.began).Seconds()
	if took < 1 {
		return
	}
	accepted := float64(p.accepted) / took
	p.best = max(p.best, accepted)
	switch {
	case p.refused > 0:
		least := p.rate * leastDecrease
		if math.IsInf(p.rate, 1) {
			least, p.best = 0, accepted
		}
		p.rate = max(leastRate, least, min(accepted, p.rate)*decrease)
	case math.IsInf(p.limit, 1):
		if p.rate *= 1 + growth*min(took, 10); p.rate > lifted*max(1, p.best) {
			p.rate = p.limit
		}
	default:
		p.rate = min(p.limit, p.rate+increase*took*p.limit)
	}
	p.began, p.accepted, p.refused = now, 0, 0
}
