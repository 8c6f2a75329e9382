// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

const (
	// defaultPatience is how long a request waits before it is refused.
	defaultPatience = 20 * time.Second
	// longestSample is how long a sample without a result keeps its place.
	longestSample = 6 * time.Hour
)

func compare(a, b string) int { return cmp.Compare(a, b) }

// Config configures a Gate.
type Config struct {
	// Limits are the limits that the runs share.
	Limits endpoint.Limits
	// Patience is how long a request waits; 20 s by default.
	Patience time.Duration
	// Now is the clock; nil for the real one.
	Now func() time.Time
}

// Gate lets requests wait for their turns. It is safe for concurrent use.
type Gate struct {
	now func() time.Time

	mu    sync.Mutex
	core  *core
	timer *time.Timer
	// unfinished are the samples that have no result yet, by their futures.
	unfinished map[string]sample
}

type sample struct {
	run   string
	since time.Time
}

// New returns a gate with no unfinished samples.
func New(config Config) *Gate {
	if config.Now == nil {
		config.Now = time.Now
	}
	g := &Gate{now: config.Now, core: newCore(config.Limits, cmp.Or(config.Patience, defaultPatience)),
		unfinished: map[string]sample{}}
	g.timer = time.AfterFunc(time.Hour, g.wake)
	g.timer.Stop()
	return g
}

// SetLimits sets the limits that the runs share from now on.
func (g *Gate) SetLimits(limits endpoint.Limits) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.core.setLimits(limits)
	g.next()
}

// SetRuns sets the weights of runs. Other runs have a weight of 1.
func (g *Gate) SetRuns(runs []endpoint.Run) {
	weights := make(map[string]int, len(runs))
	for _, run := range runs {
		weights[run.UID] = run.Weight
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.core.setWeights(weights)
	g.next()
}

// Resume takes places for samples that an earlier process forwarded. The argument maps their futures to the UIDs of
// their runs.
func (g *Gate) Resume(samples map[string]string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, uid := range samples {
		g.hold(id, uid)
	}
}

// hold takes a place for a sample. The lock is held.
func (g *Gate) hold(id, uid string) {
	if _, known := g.unfinished[id]; known {
		return
	}
	g.unfinished[id] = sample{uid, g.now()}
	g.core.resume(g.now(), uid)
}

// Busy is the error of a request that was refused, at once or after it waited in vain.
type Busy struct {
	// RetryAfter is the time after which the request may be repeated.
	RetryAfter time.Duration
}

// Error says when the request may be repeated.
func (b *Busy) Error() string {
	return fmt.Sprintf("the run's share of the endpoint is used up: repeat the request after %s", b.RetryAfter)
}

// Turn is a request that may be forwarded.
type Turn struct {
	gate    *Gate
	request Request
	end     sync.Once
}

// Wait waits for the turn of a request. It returns *Busy if the request is refused, and the cause of ctx if ctx ends
// first.
func (g *Gate) Wait(ctx context.Context, request Request) (*Turn, error) {
	g.mu.Lock()
	w := g.core.ask(g.now(), request)
	g.next()
	g.mu.Unlock()
	turn := &Turn{gate: g, request: request}
	select {
	case <-w.ready:
	case <-ctx.Done():
		g.mu.Lock()
		left := g.core.leave(w) || w.retryAfter > 0
		g.mu.Unlock()
		if !left {
			turn.End()
		}
		return nil, context.Cause(ctx)
	}
	if w.retryAfter > 0 {
		return nil, &Busy{w.retryAfter}
	}
	return turn, nil
}

// next grants turns. The lock is held.
func (g *Gate) next() {
	now := g.now()
	if wake := g.core.next(now); !wake.IsZero() {
		g.timer.Reset(max(wake.Sub(now), 100*time.Microsecond))
	}
}

func (g *Gate) wake() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next()
}

// Answered notes whether the server answered 429.
func (t *Turn) Answered(refused bool) {
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	t.gate.core.pace.answer(refused)
}

// Accept ends the turn of a request whose future has the id. A sample keeps its place until Finish.
func (t *Turn) Accept(id string) {
	t.finish(func() {
		if t.request.Sample {
			t.gate.hold(id, t.request.Run)
		}
	})
}

// End ends the turn of a request that the server did not accept.
func (t *Turn) End() { t.finish(func() {}) }

func (t *Turn) finish(before func()) {
	t.end.Do(func() {
		t.gate.mu.Lock()
		defer t.gate.mu.Unlock()
		before()
		if t.request.Sample {
			t.gate.core.finish(t.request.Run)
		}
		t.gate.next()
	})
}

// Finish frees the place of a sample that has a result, or will have none.
func (g *Gate) Finish(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free(id)
	g.next()
}

// free frees a place. The lock is held.
func (g *Gate) free(id string) {
	if held, ok := g.unfinished[id]; ok {
		delete(g.unfinished, id)
		g.core.finish(held.run)
	}
}

// Tick frees the places of samples that had no result for hours. It is called now and then.
func (g *Gate) Tick() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, held := range maps.Clone(g.unfinished) {
		if g.now().Sub(held.since) > longestSample {
			g.free(id)
		}
	}
	g.next()
}

// Throttled returns the runs that waited in the last minute, with their shares.
func (g *Gate) Throttled(now time.Time) []endpoint.Throttled {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.core.throttled(now)
}
