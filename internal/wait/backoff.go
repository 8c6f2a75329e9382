// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff has the pauses after failures in a row: First after one failure, twice as long after each further failure,
// and at most Longest.
type Backoff struct {
	First, Longest time.Duration
	// Jitter is the largest share of a pause that is added to the pause at random, or subtracted if Jitter is negative.
	// If it is 0, a pause depends only on the number of failures.
	Jitter float64
	// Random returns the share of the jitter that a pause has, from 0 to below 1. Defaults to rand.Float64.
	Random func() float64
}

// Base returns the pause after the given number of failures, without jitter; 0 after no failure.
func (b Backoff) Base(failures int) time.Duration {
	if failures <= 0 {
		return 0
	}
	pause := b.First
	for n := 1; n < failures && pause < b.Longest; n++ {
		pause *= 2
	}
	return min(pause, b.Longest)
}

// Spread adds jitter to a pause.
func (b Backoff) Spread(pause time.Duration) time.Duration {
	if b.Jitter == 0 {
		return pause
	}
	random := b.Random
	if random == nil {
		random = rand.Float64
	}
	return pause + time.Duration(float64(pause)*b.Jitter*random())
}

// After returns the pause after the given number of failures, with jitter.
func (b Backoff) After(failures int) time.Duration { return b.Spread(b.Base(failures)) }

// Pauses counts failures in a row, and returns the pause after each. It is used by one goroutine.
type Pauses struct {
	Backoff
	// Failures is how many pauses were returned since the last success. A success sets it to 0.
	Failures int
}

// Next counts a failure, and returns the pause after it.
func (p *Pauses) Next() time.Duration {
	p.Failures++
	return p.After(p.Failures)
}

// Sleep counts a failure and waits. The error is the cause of the end of ctx, if ctx ends first.
func (p *Pauses) Sleep(ctx context.Context) error { return Sleep(ctx, p.Next()) }
